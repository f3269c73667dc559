{{- define "vestige.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- /* Labels of a part: (dict "root" $ "part" "server"). */ -}}
{{- define "vestige.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "vestige.labels" -}}
{{ include "vestige.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "vestige.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* Security of a pod whose processes have this user and group number. */ -}}
{{- define "vestige.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "vestige.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* What every pod has, whatever runs in it: (dict "root" $ "user" 1000). */ -}}
{{- define "vestige.pod" -}}
serviceAccountName: {{ include "vestige.fullname" .root }}
automountServiceAccountToken: false
{{- /* A service called vestige would be told as VESTIGE_PORT and so on, which look like settings. */}}
enableServiceLinks: false
securityContext:
  {{- include "vestige.podSecurity" .user | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The name of the secret that is made from values. */ -}}
{{- define "vestige.ownSecret" -}}
{{ include "vestige.fullname" . }}-secrets
{{- end }}

{{- define "vestige.secretRef" -}}
valueFrom:
  secretKeyRef:
    name: {{ .given.existingSecret | default (include "vestige.ownSecret" .root) }}
    key: {{ empty .given.existingSecret | ternary .key .given.existingSecretKey }}
{{- end }}

{{- define "vestige.environment" -}}
- name: VESTIGE_STORAGE_BACKEND
  value: {{ .Values.storage.backend }}
- name: VESTIGE_SERVER_WORKERS
  value: {{ .Values.server.workers | quote }}
{{- if eq .Values.storage.backend "postgres" }}
{{- $postgres := .Values.storage.postgres }}
- name: VESTIGE_DATABASE_URL
{{- if $postgres.bundled.enabled }}
  value: postgresql://vestige@{{ include "vestige.fullname" . }}-postgres:5432/vestige
- name: PGPASSWORD
  {{- include "vestige.secretRef" (dict "root" . "given" $postgres.bundled "key" "postgres-password") | nindent 2 }}
{{- else }}
  {{- include "vestige.secretRef" (dict "root" . "given" $postgres "key" "database-url") | nindent 2 }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- /* The probes of something that answers over HTTP on a port of this name. */ -}}
{{- define "vestige.probes" -}}
{{- /* Opening may upgrade the schema of a large store: five minutes. */ -}}
startupProbe:
  httpGet: {path: /health, port: {{ . }} }
  periodSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /health, port: {{ . }} }
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }} }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "vestige.mounts" -}}
- {name: data, mountPath: /data}
- {name: tmp, mountPath: /tmp}
{{- if eq .Values.storage.backend "sqlite" }}
- {name: machine-id, mountPath: /etc/machine-id, subPath: machine-id, readOnly: true}
{{- end }}
{{- end }}

{{- define "vestige.serverContainer" -}}
name: server
image: {{ include "vestige.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [vestige, serve, --bind, "0.0.0.0:3927"]
env:
  {{- include "vestige.environment" . | nindent 2 }}
  {{- if or .Values.server.sessionSecret.existingSecret .Values.server.sessionSecret.value }}
  - name: VESTIGE_SESSION_SECRET
    {{- include "vestige.secretRef" (dict "root" . "given" .Values.server.sessionSecret "key" "session-secret") | nindent 4 }}
  {{- end }}
ports:
  - {name: server, containerPort: 3927}
securityContext:
  {{- include "vestige.containerSecurity" . | nindent 2 }}
{{ include "vestige.probes" "server" }}
resources:
  {{- toYaml .Values.server.resources | nindent 2 }}
volumeMounts:
  {{- include "vestige.mounts" . | nindent 2 }}
{{- end }}

{{- define "vestige.bridgeContainer" -}}
name: bridge
image: {{ include "vestige.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [vestige, bridge, --bind, "0.0.0.0:8000"]
env:
  {{- include "vestige.environment" . | nindent 2 }}
  - name: VESTIGE_AUTH_TOKEN
    {{- include "vestige.secretRef" (dict "root" . "given" .Values.bridge.auth "key" "bridge-token") | nindent 4 }}
ports:
  - {name: bridge, containerPort: 8000}
securityContext:
  {{- include "vestige.containerSecurity" . | nindent 2 }}
{{ include "vestige.probes" "bridge" }}
resources:
  {{- toYaml .Values.bridge.resources | nindent 2 }}
volumeMounts:
  {{- include "vestige.mounts" . | nindent 2 }}
{{- end }}
