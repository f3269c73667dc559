#!/bin/sh
# Takes secrets from files, refuses empty ones, then becomes the command.
# NAME_FILE=/run/secrets/name stands for NAME=<what is in that file>, as in the image of PostgreSQL.
set -eu

refuse() {
  echo "vestige: $1" >&2
  exit 2
}

for name in VESTIGE_DATABASE_URL VESTIGE_AUTH_TOKEN VESTIGE_SESSION_SECRET VESTIGE_EMBEDDINGS_API_KEY PGPASSWORD; do
  eval "given=\${${name}+yes} value=\${${name}-} file=\${${name}_FILE-}"
  if [ -n "$file" ]; then
    [ -z "$given" ] || refuse "$name and ${name}_FILE are both set; give one of them."
    [ -r "$file" ] || refuse "$file, named by ${name}_FILE, cannot be read."
    value=$(cat "$file")
    given=yes
    export "$name=$value"
    # Vestige would call it a setting that does not exist.
    unset "${name}_FILE"
  fi
  if [ -n "$given" ]; then
    case $value in *[![:space:]]*) ;; *) refuse "$name is empty. An empty secret protects nothing." ;; esac
  fi
done

exec "$@"
