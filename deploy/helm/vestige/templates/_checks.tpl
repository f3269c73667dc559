{{- /* Refuses values with which nothing safe could run. What one value says alone is in values.schema.json. */ -}}
{{- define "vestige.checks" -}}
{{- if eq .Values.storage.backend "sqlite" }}
{{- if gt (int .Values.server.replicas) 1 }}
{{- fail "server.replicas must be 1 with storage.backend sqlite: one file serves one machine. Use postgres for more." }}
{{- end }}
{{- if gt (int .Values.bridge.replicas) 1 }}
{{- fail "bridge.replicas must be 1 with storage.backend sqlite: it runs beside the one server." }}
{{- end }}
{{- else }}
{{- include "vestige.checkDatabase" .Values.storage.postgres }}
{{- end }}
{{- /* A cookie that one replica signed must be good for the others. */}}
{{- $session := .Values.server.sessionSecret }}
{{- if or (gt (int .Values.server.replicas) 1) $session.existingSecret $session.value }}
{{- include "vestige.checkSecret" (dict "what" "server.sessionSecret" "name" $session.existingSecret "field" "value" "value" $session.value) }}
{{- end }}
{{- if .Values.bridge.enabled }}
{{- include "vestige.checkSecret" (dict "what" "bridge.auth" "name" .Values.bridge.auth.existingSecret "field" "token" "value" .Values.bridge.auth.token) }}
{{- end }}
{{- end }}

{{- define "vestige.checkDatabase" -}}
{{- $ways := list }}
{{- range list .existingSecret (trim .url) (.bundled.enabled | ternary "bundled" "") }}
{{- if . }}{{ $ways = append $ways . }}{{ end }}
{{- end }}
{{- if eq (len $ways) 0 }}
{{- fail "No database: set storage.postgres.existingSecret, storage.postgres.url or storage.postgres.bundled.enabled, or storage.backend sqlite." }}
{{- end }}
{{- if gt (len $ways) 1 }}
{{- fail "More than one database: set one of storage.postgres.existingSecret, storage.postgres.url and storage.postgres.bundled.enabled." }}
{{- end }}
{{- if .bundled.enabled }}
{{- include "vestige.checkSecret" (dict "what" "storage.postgres.bundled" "name" .bundled.existingSecret "field" "password" "value" .bundled.password) }}
{{- end }}
{{- end }}


{{- define "vestige.checkSecret" -}}
{{- if not (or .name (trim .value)) }}
{{- fail (printf "%s.%s is empty: set %s.existingSecret or %s.%s." .what .field .what .what .field) }}
{{- end }}
{{- if and .name (trim .value) }}
{{- fail (printf "Both %s.existingSecret and %s.%s are set: give one of them." .what .what .field) }}
{{- end }}
{{- end }}
