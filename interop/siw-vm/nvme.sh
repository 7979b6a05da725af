# nvme.sh: what "siw-vm run --nvme" adds to the guest, for disks over NVMe and iSER, and NFS; sourced by siw-vm, after build.sh.
# shellcheck shell=bash
#
# It is an archive of its own beside that of the guest, with the modules of the guest's very
# kernel: who does not ask for NVMe neither builds it nor has its 130 MB in the guest's memory.

NVME_PACKAGES=(nvme-cli fio e2fsprogs stress-ng iproute2 open-iscsi tgt)
NVME_MODULES=(nvme-rdma nvmet-rdma nvmet loop null_blk ext4 crc32c_generic
	ib_iser sd_mod crct10dif_generic veth sch_netem sch_ingress ifb act_mirred cls_matchall
	nfsd nfsv3 nfsv4 rpcrdma ib_isert)
NVME_PROGRAMS=(nvme fio stress-ng mkfs.ext4 e2fsck tc blkdiscard blockdev iscsid iscsiadm)

guest_kernel() { cpio -t <"$CACHE/base.cpio" 2>/dev/null | sed -n 's,^lib/modules/\([^/]*\)$,\1,p'; }

nvme_stamp() { (cat "$HERE/nvme.sh" && guest_kernel && cat "$CACHE/stamp") | sha256sum | cut -c1-16; }

nvme_missing() {
	local p
	for p in "${NVME_PROGRAMS[@]}" tgtd; do command -v "$p" >/dev/null || return 0; done # the last one for the host
	return 1
}

nvme_install() {
	nvme_missing || return 0
	[ "$(id -u)" = 0 ] || die "not root, and some of these packages are missing: ${NVME_PACKAGES[*]}"
	note "installing ${NVME_PACKAGES[*]}"
	apt_lists
	apt install -y --no-install-recommends "${NVME_PACKAGES[@]}" || apt_failed "apt-get install failed"
}

# nvme_kernel unpacks the guest's kernel once more. Where Debian has gone on to another one,
# the guest is made anew with that.
nvme_kernel() {
	local debs=$CACHE/debs
	rm -rf "$debs" "$CACHE/kernel"
	mkdir -p "$debs" "$CACHE/kernel"
	note "downloading linux-image-$KV"
	(cd "$debs" && apt download "linux-image-$KV") || return 1
	dpkg -x "$debs"/linux-image-*.deb "$CACHE/kernel"
	rm -rf "$debs"
}

nvme_root() { # nvme_root ROOT
	local p files=()
	mkdir -p "$1/usr/bin" "$1/etc/nvme" "$1/etc/iscsi" "$1/run/lock/iscsi"
	for p in "${NVME_PROGRAMS[@]}"; do
		cp -L "$(command -v "$p")" "$1/usr/bin/"
		files+=("$(command -v "$p")")
	done
	mapfile -t files < <(for p in "${files[@]}"; do ldd "$p"; done 2>/dev/null | grep -oE '/[^ )]+' | sort -u)
	copy_into "$1" "${files[@]}" /etc/mke2fs.conf
	echo nqn.2014-08.org.nvmexpress:uuid:5f31c200-0000-4000-8000-000000000001 >"$1/etc/nvme/hostnqn"
	echo 5f31c200-0000-4000-8000-000000000001 >"$1/etc/nvme/hostid"
	echo InitiatorName=iqn.2026-11.test.iwarp:host >"$1/etc/iscsi/initiatorname.iscsi"
	echo node.startup = manual >"$1/etc/iscsi/iscsid.conf"
	MODULES+=("${NVME_MODULES[@]}")
	add_modules "$1"
}

nvme_all() {
	local root=$CACHE/nvme-root
	nvme_install
	KV=$(guest_kernel)
	if ! nvme_kernel; then
		build_all
		KV=$(guest_kernel)
		nvme_kernel || apt_failed "cannot download linux-image-$KV"
	fi
	rm -rf "$root"
	nvme_root "$root"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$CACHE/nvme.cpio.new"
	mv "$CACHE/nvme.cpio.new" "$CACHE/nvme.cpio"
	rm -rf "$root" "$CACHE/kernel"
	nvme_stamp >"$CACHE/nvme.stamp"
	note "built the guest's NVMe in $CACHE"
}

# build_nvme makes the archive unless it is there; the guest itself is there already.
build_nvme() {
	exec 9>"$CACHE/lock"
	flock 9
	if [ ! -e "$CACHE/nvme.cpio" ] || [ "$(cat "$CACHE/nvme.stamp" 2>/dev/null)" != "$(nvme_stamp)" ]; then nvme_all; fi
	exec 9>&-
}
