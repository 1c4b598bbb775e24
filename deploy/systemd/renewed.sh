#!/bin/sh
# renewed.sh: restarts the scheduler if the files that it was started with, and has
# copies of (LoadCredential=), were renewed since. Other programs read theirs anew.
# kctl-renew.service calls it. It also helps after a `kctl pki renew` by hand.
set -eu
from=${1:-/etc/kctl} has=${2:-/run/credentials/kctl-scheduler.service}

newer() { [ -e "$2" ] && [ -n "$(find "$1" -newer "$2" 2>/dev/null)" ]; }

if newer "$from/scheduler.kubeconfig" "$has/kubeconfig" ||
	newer "$from/pki/scheduler-server.crt" "$has/server.crt" ||
	newer "$from/pki/ca.crt" "$has/ca.crt"; then
	echo "the scheduler is restarted, for renewed files"
	systemctl --no-block try-restart kctl-scheduler.service
fi
