#!/bin/sh
# Makes what compose mounts into the containers, in deploy/secrets, once. What is there is kept.
# The folder is yours alone. The files in it can be read by everybody who gets that far: the users in the
# containers have other numbers than you.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets
chmod 700 secrets

make() {
  if [ -s "secrets/$1" ]; then
    echo "secrets/$1 is there already."
  else
    od -An -N"$2" -tx1 /dev/urandom | tr -d ' \n' > "secrets/$1"
    chmod 444 "secrets/$1"
    echo "secrets/$1 was made."
  fi
}

make postgres_password 32
make bridge_token 32
make machine_id 16
