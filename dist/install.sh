#!/bin/sh
# Installs iwarp {{.Version}}: the command, man pages, shell completion and, on Linux, the library for RDMA programs.
#
#   sh install.sh                        into /usr/local for root, and into ~/.local for others
#   PREFIX=/opt/iwarp sh install.sh      into another directory
#   IWARP_FROM=DIR sh install.sh         from a directory with the archives, or from another URL
#
# The archive is used only if it has the checksum that this script has.
set -eu
umask 022

url={{.URL}}
sums() {
	cat <<'END'
{{.Sums}}END
}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

# fetch NAME FILE
fetch() {
	from=${IWARP_FROM:-$url}
	if [ -d "$from" ]; then
		cp "$from/$1" "$2"
	elif command -v curl >/dev/null; then
		curl -fsSL -o "$2" "$from/$1"
	elif command -v wget >/dev/null; then
		wget -qO "$2" "$from/$1"
	else
		fail "install curl or wget first"
	fi
}

checksum() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1"
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1"
	else
		sha256 -r "$1"
	fi
}

# place FILE puts a file where the archive's tree has it. A running program keeps its own file.
place() {
	mkdir -p "$prefix/$(dirname "$1")"
	cp "$1" "$prefix/$1.new"
	mv "$prefix/$1.new" "$prefix/$1"
}

system=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
i?86) arch=386 ;;
*) arch=$(uname -m) ;;
esac
line=$(sums | grep -- "-$system-$arch.tar.gz\$") ||
	fail "there is no archive for $system on $arch: build it with go install github.com/goiwarp/iwarp/cmd/iwarp@v{{.Version}}"
sum=${line%% *}
archive=${line##* }

if [ -n "${PREFIX:-}" ]; then
	prefix=$PREFIX
elif [ "$(id -u)" = 0 ]; then
	prefix=/usr/local
else
	prefix=$HOME/.local
fi
mkdir -p "$prefix" || fail "$prefix cannot be written: name another directory by PREFIX"
prefix=$(cd "$prefix" && pwd)

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fetch "$archive" "$dir/$archive" || fail "$archive cannot be fetched"
got=$(checksum "$dir/$archive")
[ "${got%% *}" = "$sum" ] || fail "$archive has the checksum ${got%% *}, and not $sum: nothing is installed"

cd "$dir"
tar -xzf "$archive"
cd "${archive%.tar.gz}"
for unit in lib/systemd/system/*.service; do
	[ -f "$unit" ] || continue
	sed "s|/usr/bin/iwarp|$prefix/bin/iwarp|" "$unit" >"$dir/unit"
	mv "$dir/unit" "$unit"
done
for tree in bin lib share; do
	[ -d "$tree" ] || continue
	find "$tree" -type f
done | LC_ALL=C sort >"$dir/files"
while read -r file; do place "$file"; done <"$dir/files"
mkdir -p "$prefix/share/iwarp"
sed "s|^|$prefix/|" "$dir/files" >"$prefix/share/iwarp/files"

echo "installed $("$prefix/bin/iwarp" version | head -n 1) into $prefix"
case :$PATH: in
*":$prefix/bin:"*) echo "next: iwarp" ;;
*) echo "next: put $prefix/bin into PATH, and run iwarp" ;;
esac
