#!/bin/sh
# renewed.sh: restarts the scheduler if the files that it was started with, and has
# copies of (LoadCredential=), were renewed since. Other programs read theirs anew.
# kctl-renew.service calls it. It also helps after a `kctl pki renew` by hand.
set -eu
unit=kctl-scheduler.service
case $(systemctl show --value --property=ActiveState "$unit") in
active | activating) ;;
*) exit 0 ;; # its next start takes what is there
esac

# The copies themselves can't be seen from here: systemd hides them from other units.
since=$(systemctl show --value --timestamp=us+utc --property=InactiveExitTimestamp "$unit")
# A time to come, of a clock that was ahead, would be newer than each start, and end it every day.
newer=$(find /etc/kctl/scheduler.kubeconfig /etc/kctl/pki/scheduler-server.crt /etc/kctl/pki/ca.crt -newermt "$since" ! -newermt now 2>/dev/null || :)
[ -n "$newer" ] || exit 0
echo "the scheduler is restarted, for renewed files"
systemctl --no-block try-restart "$unit"
