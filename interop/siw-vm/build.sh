# build.sh: how the guest is made; sourced by siw-vm, which sets CACHE and HERE.
# shellcheck shell=bash
#
# Debian's kernel leaves siw out (CONFIG_RDMA_SIW is not set), so the driver is
# compiled from Debian's kernel source package against the headers of Debian's
# kernel. None of the three is installed, only unpacked.

PACKAGES=(qemu-system-x86 cpio xz-utils zstd busybox-static iproute2 kmod binutils
	gcc-12 make libc6-dev libibverbs-dev librdmacm-dev rdmacm-utils
	ibverbs-providers rdma-core perftest tshark tcpdump util-linux)
MODULES=(virtio_pci virtio_net virtio_rng crc32c_generic crc32c-intel
	rdma_cm rdma_ucm ib_uverbs ib_core iw_cm ib_cm siw sctp)
PROGRAMS=(rping ucmatose rdma_client rdma_server rdma_xclient rdma_xserver cmtime rstream riostream
	ib_write_lat ib_write_bw ib_send_lat ib_send_bw ib_read_lat ib_read_bw rdma ip)

apt() { # apt-get with its log kept, and an end; a mirror may be away for a moment
	local turn
	for turn in 1 2 3; do
		[ "$turn" = 1 ] || sleep 10
		timeout 900 env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" </dev/null >"$CACHE/apt.log" 2>&1 && return 0
	done
	return 1
}

apt_failed() { tail -n 5 "$CACHE/apt.log" >&2; die "$*"; }

# A fresh machine has no package lists, an old one has lists that lie. Who is
# not root makes do with the lists that are there.
apt_lists() {
	[ -z "${LISTS_FRESH:-}" ] && [ "$(id -u)" = 0 ] || return 0
	apt update || apt_failed "apt-get update failed"
	LISTS_FRESH=1
}

missing_packages() {
	dpkg-query -W -f '${Package} ${Architecture} ${db:Status-Status}\n' "${PACKAGES[@]}" 2>/dev/null |
		sed -nE 's/ (amd64|all) installed$//p' | sort | comm -13 - <(printf '%s\n' "${PACKAGES[@]}" | sort)
}

check_host() {
	[ "$(uname -m)" = x86_64 ] || die "the guest is made for x86-64 hosts only"
	command -v apt-get >/dev/null || die "the guest is made from Debian's packages, and there is no apt-get"
}

install_packages() {
	local missing
	mapfile -t missing < <(missing_packages)
	[ ${#missing[@]} != 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "not root, and these packages are missing: ${missing[*]}"
	note "installing ${missing[*]}"
	apt_lists
	apt install -y --no-install-recommends "${missing[@]}" || apt_failed "apt-get install failed"
}

# kernel_version: the one behind linux-image-amd64, e.g. 6.1.0-48-amd64
kernel_version() {
	apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-[0-9]/ && !n++ {sub("linux-image-", ""); print $2}'
}

header_packages() {
	apt-cache depends "linux-headers-$KV" | sed -n -E 's/^ *Depends: (linux-(headers|kbuild)-.*)/\1/p'
}

fetch_kernel() {
	local p src debs=$CACHE/debs
	apt_lists
	KV=$(kernel_version)
	[ -n "$KV" ] || die "no package behind linux-image-amd64: Debian 12 is needed"
	src=linux-source-$(echo "$KV" | cut -d. -f1,2)
	rm -rf "$debs" "$CACHE"/{kernel,headers,source}
	mkdir -p "$debs" "$CACHE"/{kernel,headers,source}
	pushd "$debs" >/dev/null
	for p in "linux-image-$KV" "linux-headers-$KV" $(header_packages) "$src"; do
		note "downloading $p"
		apt download "$p" || apt_failed "cannot download $p"
	done
	dpkg -x linux-image-*.deb "$CACHE/kernel"
	for p in linux-headers-*.deb linux-kbuild-*.deb; do dpkg -x "$p" "$CACHE/headers"; done
	dpkg-deb --fsys-tarfile "$src"_*.deb | tar -xOf - "./usr/src/$src.tar.xz" |
		tar -xJf - -C "$CACHE/source" --strip-components=1 "$src/drivers/infiniband/sw/siw"
	popd >/dev/null
	rm -rf "$debs"
}

# parametrize turns the driver's compile-time constants into parameters; in the
# folder of a copy of its source.
parametrize() {
	local k
	for k in zcopy_tx try_gso mpa_crc_required mpa_crc_strict siw_tcp_nagle peer_to_peer; do
		sed -i -E "s/^const bool ($k)( = [a-z]+)?;/bool \1\2;\nmodule_param(\1, bool, 0644);/" siw_main.c
		sed -i -E "s/^extern const bool $k;/extern bool $k;/" siw.h
		grep -q "module_param($k," siw_main.c || die "siw_main.c: no constant $k"
	done
	sed -i -E 's/^(const )?u_char mpa_version( = [A-Z0-9_]+)?;/u_char mpa_version\2;\nmodule_param(mpa_version, byte, 0644);/' siw_main.c
	sed -i -E 's/^extern const u_char mpa_version;/extern u_char mpa_version;/' siw.h
	sed -i -E 's/^static const bool (relaxed_ird_negotiation)( = [a-z]+)?;/static bool \1\2;\nmodule_param(\1, bool, 0644);/' siw_cm.c
	# rtr_type becomes an expression over the parameter: 1 write, 2 read, 3 both
	sed -i -E 's/^static (const )?__be16 rtr_type = .*/static int rtr_sel = 3;\nmodule_param_named(rtr_type, rtr_sel, int, 0644);\n#define rtr_type ((__be16)((rtr_sel \& 1 ? MPA_V2_RDMA_WRITE_RTR : 0) | (rtr_sel \& 2 ? MPA_V2_RDMA_READ_RTR : 0)))/' siw_cm.c
	if ! { grep -q 'module_param(mpa_version' siw_main.c && grep -q 'module_param(relaxed' siw_cm.c &&
		grep -q 'module_param_named(rtr_type' siw_cm.c; }; then die "siw: a constant was not found"; fi
	add_accept_kick
}

# siw_accept() sends the MPA Reply before it hooks the socket to the QP, so an
# FPDU that arrives in between lies unread until the next segment comes. With
# accept_kick=1 the driver looks again; off, as in the unchanged driver, unless
# asked for.
add_accept_kick() {
	local look='lock_sock(cep->sock->sk); if (!skb_queue_empty(\&cep->sock->sk->sk_receive_queue)) cep->sock->sk->sk_data_ready(cep->sock->sk); release_sock(cep->sock->sk);'
	sed -i -E '/^static bool relaxed_ird/i static bool accept_kick;\nmodule_param(accept_kick, bool, 0644);' siw_cm.c
	sed -i -E '/^int siw_accept\(/,/^}/{
		s/^(\t\t)(siw_sk_assign_rtr_upcalls\(cep\);)/\1\2\n\t\tif (accept_kick) { '"$look"' }/
		s/^(\t\trv = siw_cm_upcall\(cep, IW_CM_EVENT_ESTABLISHED, 0\);)/\1\n\t\tif (accept_kick \&\& !rv) { '"$look"' }/
	}' siw_cm.c
	[ "$(grep -c 'if (accept_kick' siw_cm.c)" = 2 ] || die "siw_accept: not as expected"
}

compile_siw() { # compile_siw FOLDER
	local headers=$CACHE/headers/usr/src/linux-headers-$KV common
	common=$(echo "$CACHE"/headers/usr/src/linux-headers-*-common)
	echo "include $common/Makefile" >"$headers/Makefile"
	make -s -C "$headers" M="$1" CONFIG_RDMA_SIW=m modules >"$1.log" 2>&1 ||
		{ tail -n 30 "$1.log" >&2; die "siw did not compile"; }
	strip --strip-debug "$1/siw.ko"
}

build_siw() {
	local v
	for v in siw siw-param; do
		note "compiling $v for $KV"
		rm -rf "${CACHE:?}/$v"
		cp -r "$CACHE/source/drivers/infiniband/sw/siw" "$CACHE/$v"
		[ "$v" = siw ] || (cd "$CACHE/$v" && parametrize)
		compile_siw "$CACHE/$v"
	done
}

# An uncompressed kernel, started by its PVH entry, saves the guest the slow
# decompression. Where the payload is not understood the packed one is booted.
unpack_kernel() {
	local z=$CACHE/vmlinuz setup off len
	cp "$CACHE/kernel/boot/vmlinuz-$KV" "$z"
	setup=$(od -An -tu1 -j $((0x1f1)) -N1 "$z" | tr -d ' ')
	off=$(od -An -tu4 -j $((0x248)) -N4 "$z" | tr -d ' ')
	len=$(od -An -tu4 -j $((0x24c)) -N4 "$z" | tr -d ' ')
	tail -c +$(((setup + 1) * 512 + off + 1)) "$z" | head -c $((len - 4)) >"$CACHE/payload" || true
	case $(od -An -tx1 -N4 "$CACHE/payload" | tr -d ' ') in
	fd377a58) xz -dc <"$CACHE/payload" ;;
	28b52ffd) zstd -dcq <"$CACHE/payload" ;;
	1f8b*) gzip -dc <"$CACHE/payload" ;;
	*) false ;;
	esac >"$CACHE/vmlinux" && strip --strip-debug "$CACHE/vmlinux" || rm -f "$CACHE/vmlinux"
	rm -f "$CACHE/payload"
}

copy_into() { # copy_into ROOT FILE...: each file at its own path, links resolved
	local root=$1 f
	shift
	for f; do
		[ -e "$root$f" ] || { mkdir -p "$root$(dirname "$f")"; cp -L "$f" "$root$f"; }
	done
}

# What is loaded by name, and so not found by ldd: the provider of verbs for
# siw, libgcc_s (glibc's pthread_exit) and stdbuf's library.
hidden_libraries() {
	dpkg -L ibverbs-providers:amd64 | grep '/libibverbs/libsiw-'
	ldconfig -p | awk '/libgcc_s.so.1 .*x86-64/ && !n++ {print $NF}'
	echo /usr/libexec/coreutils/libstdbuf.so
}

add_programs() { # add_programs ROOT
	local p files
	gcc-12 -O1 -Wall -Werror -o "$1/usr/bin/cmpd" "$HERE/guest/cmpd.c" -lrdmacm -libverbs || die "cmpd did not compile"
	mapfile -t files < <(hidden_libraries)
	[ ${#files[@]} = 3 ] || die "of what is loaded by name there is only ${files[*]}"
	for p in "${PROGRAMS[@]}"; do
		cp -L "$(command -v "$p")" "$1/usr/bin/"
		files+=("$(command -v "$p")")
	done
	copy_into "$1" "${files[@]}" /etc/libibverbs.d/siw.driver
	mapfile -t files < <(for p in "${files[@]}" "$1/usr/bin/cmpd"; do ldd "$p"; done 2>/dev/null | grep -oE '/[^ )]+' | sort -u)
	copy_into "$1" "${files[@]}"
	ldconfig -r "$1" 2>/dev/null || true
}

add_busybox() { # add_busybox ROOT
	local b
	cp "$(command -v busybox)" "$1/bin/busybox"
	for b in $("$1/bin/busybox" --list); do
		case $b in busybox | ip | init) ;; *) ln -sf busybox "$1/bin/$b" ;; esac
	done
	ln -sf ../bin/busybox "$1/sbin/modprobe"
}

add_modules() { # add_modules ROOT: those of MODULES and what they depend on
	local m=lib/modules/$KV f
	mkdir -p "$CACHE/kernel/$m/extra" "$1/lib/siw-param"
	cp "$CACHE/siw/siw.ko" "$CACHE/kernel/$m/extra/"
	cp "$CACHE/siw-param/siw.ko" "$1/lib/siw-param/"
	depmod -b "$CACHE/kernel" "$KV"
	for f in "${MODULES[@]}"; do
		modprobe -d "$CACHE/kernel" -S "$KV" --show-depends "$f" || die "no module $f"
	done | sed -n 's,^insmod .*/\(lib/modules/[^ ]*\).*,\1,p' | sort -u |
		while read -r f; do mkdir -p "$1/$(dirname "$f")"; cp "$CACHE/kernel/$f" "$1/$f"; done
	cp "$CACHE/kernel/$m"/modules.{order,builtin,builtin.modinfo} "$1/$m/"
	depmod -b "$1" "$KV"
	rm -f "$1/$m"/modules.*.bin
}

build_root() {
	local root=$CACHE/root
	rm -rf "$root"
	mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,proc,sys,dev,run,tmp,root}
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
	echo 'hosts: files' >"$root/etc/nsswitch.conf"
	add_busybox "$root"
	add_programs "$root"
	add_modules "$root"
	install -m 755 "$HERE/guest/init" "$root/init"
	install -m 755 "$HERE/guest/rig-serve" "$root/usr/bin/"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$CACHE/base.cpio.new"
	mv "$CACHE/base.cpio.new" "$CACHE/base.cpio"
}

stamp() { cat "$HERE/build.sh" "$HERE"/guest/* | sha256sum | cut -c1-16; }

up_to_date() { [ -e "$CACHE/base.cpio" ] && [ "$(cat "$CACHE/stamp" 2>/dev/null)" = "$(stamp)" ]; }

# The stamp is that of what is read now: these files may change while the guest is built.
build_all() {
	local made_of
	made_of=$(stamp)
	rm -f "$CACHE/stamp"
	install_packages
	fetch_kernel
	build_siw
	unpack_kernel
	build_root
	rm -rf "$CACHE"/{kernel,headers,source,root}
	echo "$made_of" >"$CACHE/stamp"
	note "built for kernel $KV in $CACHE"
}

# build makes the guest unless it is there; two at once wait for each other.
build() {
	mkdir -p "$CACHE" || die "cannot write to $CACHE"
	[ "${1:-}" != --force ] || rm -f "$CACHE/stamp"
	if up_to_date && [ -z "$(missing_packages)" ]; then return 0; fi
	check_host
	exec 9>"$CACHE/lock"
	flock 9
	if up_to_date; then install_packages; else build_all; fi
	exec 9>&-
}
