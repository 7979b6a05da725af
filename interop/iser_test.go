//go:build interop

package interop_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const (
	ourIQN   = "iqn.2026-11.test.iwarp:disk"
	guestIQN = "iqn.2026-11.test.iwarp:host" // as siw-vm/nvme.sh names the guest
	iserPort = "3260"                        // of tgt, which takes no other for iSER
)

// mountISER has the guest log in, make a file system, work on it and have it checked, and read the disk as it is then,
// and none of it from the guest's memory.
const mountISER = `set -e
modprobe -a ib_iser sd_mod crct10dif_generic ext4
iscsid
node="-m node -T ` + ourIQN + ` -p $PEER_IP:` + iserPort + `"
timeout 20 iscsiadm $node -I iser --op new
timeout 100 iscsiadm $node -I iser --login
timeout 20 sh -c 'until [ -e /dev/sda ]; do usleep 50000; done'
mkfs.ext4 -q /dev/sda
mkdir -p /mnt; mount /dev/sda /mnt
fio --name=v --directory=/mnt --size=3m --rw=randwrite --bsrange=4k-64k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c \
	--numjobs=2 --minimal >/tmp/fio.log 2>&1 || { cat /tmp/fio.log; exit 1; }
umount /mnt
e2fsck -fn /dev/sda
echo DIGEST $(dd if=/dev/sda bs=1M iflag=direct 2>/dev/null | sha256sum)
timeout 60 iscsiadm $node --logout
`

// TestISERInitiator: Linux's initiator of iSER has a file system on a disk of Debian's tgt, which runs on our library.
// The digest of the target's file is what the guest reads.
func TestISERInitiator(t *testing.T) {
	run := library(t)
	disk := serveISER(t, run)
	g := Boot(t, Options{NVMe: true})
	p := g.Start(t, mountISER)
	p.WantSuccess(t, 400*time.Second)
	wantDigest(t, disk, p)
}

// serveISER has tgt serve an empty disk, and returns its file.
func serveISER(t *testing.T, run runner) (disk string) {
	t.Helper()
	ln, err := net.Listen("tcp", ":"+iserPort)
	if err != nil {
		testrig.Lacks(t, fmt.Sprintf("tgt serves iSER on port %s only: %v", iserPort, err))
	}
	testrig.Must(t, ln.Close())
	disk = filepath.Join(t.TempDir(), "disk")
	testrig.Must(t, os.WriteFile(disk, nil, 0o666))
	testrig.Must(t, os.Truncate(disk, diskSize))
	control := fmt.Sprint(os.Getpid() % 0x8000) // a number that names a socket of the file system
	daemon := run(t, "", "tgtd -f -C "+control+" --iscsi portal=127.0.0.1:"+freePort(t))
	adm := func(line string) error {
		return exec.CommandContext(t.Context(), "tgtadm",
			append([]string{"-C", control}, strings.Fields(line)...)...).Run()
	}
	if !poll(20*time.Second, func() bool { return adm("--mode sys --op show") == nil || daemon.ended() }) ||
		daemon.ended() {
		t.Fatal("tgtd does not run")
	}
	for _, line := range []string{
		"--mode target --op new --tid 1 -T " + ourIQN,
		"--mode logicalunit --op new --tid 1 --lun 1 -b " + disk,
		"--mode target --op bind --tid 1 -I ALL",
		"--mode target --op bind --tid 1 -Q " + guestIQN,
	} {
		testrig.Must(t, adm("--lld iser "+line))
	}
	return disk
}
