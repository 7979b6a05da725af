#!/bin/sh
# Before the package is removed, the services are stopped. An update leaves them as they are.
# dpkg calls this with "remove", rpm with the number of packages that remain.
set -e
case ${1:-} in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now iwarp.service iwarp-disk.service || true
	fi
	;;
esac
