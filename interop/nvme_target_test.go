//go:build interop

package interop_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// connectScript connects the guest to our target, and waits for the disk.
func connectScript(port string) string {
	return fmt.Sprintf(`set -e
modprobe -a nvme-rdma ext4
nvme connect -t rdma -a $PEER_IP -s %s -n %s -i 2 -c 1 -l 120
until [ -e /dev/nvme0n1 ]; do usleep 50000; done
`, port, ourNQN)
}

// useScript makes a file system, works on it and has it checked, and reads the disk as it is then. Debian has no
// package with fsstress, whose part stress-ng has: files and directories are made, renamed, filled, verified and
// removed by several processes.
const useScript = `mkfs.ext4 -q /dev/nvme0n1
mkdir -p /mnt; mount /dev/nvme0n1 /mnt
fio --name=v --directory=/mnt --size=3m --rw=randwrite --bsrange=4k-64k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c \
	--numjobs=2 --minimal >/tmp/fio.log 2>&1 || { cat /tmp/fio.log; exit 1; }
cd /mnt
stress-ng --hdd 2 --hdd-bytes 2m --hdd-ops 64 --hdd-opts wr-rnd,rd-rnd,fsync --dentry 2 --dentry-ops 200 --rename 1 --rename-ops 50 --verify --temp-path /mnt -q
cd /; fstrim /mnt; umount /mnt
e2fsck -fn /dev/nvme0n1
` + digestScript

// digestScript reads the whole disk, and none of it from the guest's memory.
const digestScript = `echo DIGEST $(dd if=/dev/nvme0n1 bs=1M iflag=direct 2>/dev/null | sha256sum)
nvme disconnect -n ` + ourNQN + `
`

// lossScript has the guest's link lose 1 % of the packets in both directions. Busybox's shell has a tc of its own that
// knows no netem.
const lossScript = `set -e
modprobe -a sch_netem ifb act_mirred cls_matchall sch_ingress
ip link add ifb0 type ifb 2>/dev/null || true; ip link set ifb0 up
/usr/bin/tc qdisc add dev eth0 root netem loss 1%
/usr/bin/tc qdisc add dev ifb0 root netem loss 1%
/usr/bin/tc qdisc add dev eth0 ingress
/usr/bin/tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0
`

const noLossScript = `for d in eth0 ifb0; do /usr/bin/tc -s qdisc show dev $d; done; /usr/bin/tc qdisc del dev eth0 root; /usr/bin/tc qdisc del dev eth0 ingress`

// TestNVMeTarget has Linux's host use disks of our target.
func TestNVMeTarget(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	t.Run("command", func(t *testing.T) { testNVMeCommand(t, g) })
	t.Run("loss", func(t *testing.T) {
		d := serveDisk(t, newDisk(t), "0")
		g.Start(t, lossScript).WantSuccess(t, 30*time.Second)
		p := g.Start(t, connectScript(d.port)+useScript)
		p.WantSuccess(t, 400*time.Second)
		d.wantDigest(t, p)
		lost := g.Start(t, noLossScript)
		lost.WantSuccess(t, 30*time.Second)
		t.Log(lost.Output())
	})
	t.Run("cut", func(t *testing.T) { testNVMeCut(t, g) })
	t.Run("restart", func(t *testing.T) { testNVMeRestart(t, g) })
}

// testNVMeCommand has the host use a disk of the built command's, as an operator does: it makes the file, says by which
// line to connect, and ends at SIGTERM with everything in the file.
func testNVMeCommand(t *testing.T, g *Guest) {
	path := filepath.Join(t.TempDir(), "disk")
	disk, port := diskCommand(t, path, "0")
	found := g.Start(t, "modprobe nvme-rdma; nvme discover -t rdma -a $PEER_IP -s "+port)
	found.WantSuccess(t, 60*time.Second)
	found.WantOutput(t, "subnqn:  "+ourNQN)
	p := g.Start(t, connectScript(port)+useScript)
	p.WantSuccess(t, 400*time.Second)
	disk.stop() // by SIGTERM
	if status := disk.Wait(t, 30*time.Second); status != 0 {
		t.Errorf("after SIGTERM its status is %d", status)
	}
	wantDigest(t, path, p)
}

// diskCommand starts the command with a disk that it makes where there is none, and returns it with its port.
func diskCommand(t *testing.T, path, port string, flags ...string) (disk *Proc, itsPort string) {
	t.Helper()
	args := []string{"disk", path, "--create", strconv.Itoa(diskSize), "--listen",
		"127.0.0.1:" + port, "--nqn", ourNQN, "-v"}
	disk = iwarpCommand(t, append(args, flags...)...)
	disk.WantOutput(t, "-n "+ourNQN+"\n")
	found := connectPort.FindStringSubmatch(disk.Output())
	if found == nil {
		t.Fatalf("it does not say by what to connect:\n%s", disk.Output())
	}
	return disk, found[1]
}

// connectPort finds the port in the line that the command says.
var connectPort = regexp.MustCompile(`(?m)^nvme connect -t rdma -a 127\.0\.0\.1 -s (\d+) -n `)

// workScript has fio write a file system's file twice, and read and compare it in the end.
const workScript = `mkfs.ext4 -q /dev/nvme0n1
mkdir -p /mnt; mount /dev/nvme0n1 /mnt
fio --name=v --directory=/mnt --size=8m --loops=2 --rw=randwrite --bsrange=4k-16k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c \
	--do_verify=1 --minimal >/tmp/fio.log 2>&1 || { cat /tmp/fio.log; dmesg | grep -v requeuing | tail -n 40; exit 1; }
umount /mnt
e2fsck -fn /dev/nvme0n1
for i in $(seq $(dmesg | grep -c "nvme.*Successfully reconnected")); do echo RECONNECTED $i; done
dmesg -c >/dev/null
` + digestScript

// testNVMeCut resets all connections of the host, in the middle of its work, three times.
func testNVMeCut(t *testing.T, g *Guest) {
	nvmeUpset(t, g, func(d *servedDisk, p *Proc) *servedDisk {
		for range 3 {
			if !d.written(p, 400) {
				break // it fails, and p tells of that
			}
			d.cuts.all()
		}
		return d
	}, "RECONNECTED 3")
}

// testNVMeRestart ends the target in the middle of the host's work, and starts another with the same disk at the same
// address.
func testNVMeRestart(t *testing.T, g *Guest) {
	nvmeUpset(t, g, func(d *servedDisk, p *Proc) *servedDisk {
		if !d.written(p, 400) {
			return d
		}
		if err := d.shutDown(); err != nil {
			t.Error(err)
		}
		return serveDisk(t, d.path, d.port)
	}, "RECONNECTED 1")
}

// nvmeUpset has the guest work on a disk while something happens to its connections, and goes on until the kernel has
// been spared its own fault.
func nvmeUpset(t *testing.T, g *Guest, upset func(*servedDisk, *Proc) *servedDisk, want string) {
	for turn := 1; ; turn++ {
		d := serveDisk(t, newDisk(t), "0")
		p := g.Start(t, connectScript(d.port)+"dmesg -c >/dev/null\n"+workScript)
		d = upset(d, p)
		if p.Wait(t, 400*time.Second) == 0 {
			p.WantOutput(t, want)
			d.wantDigest(t, p)
			return
		}
		if turn == 5 || !postRefused(t, g) {
			t.Fatalf("turn %d: %s", turn, p.Output())
		}
		t.Logf("once more: siw has refused a command of nvme-rdma's, which failed the write in place of sending it again:\n%s", p.Output())
		g.Start(t, "umount /mnt; nvme disconnect -n "+ourNQN).WantSuccess(t, 60*time.Second)
	}
}

// postRefused reports whether the guest's kernel has run into a fault of its own: while a connection ends, siw may
// answer a post with ENOTCONN, and nvme-rdma, which sends commands again after any other end of a connection, takes
// that for the end of the command (docs/disk.md).
func postRefused(t *testing.T, g *Guest) bool {
	return g.Start(t, "dmesg | grep -q 'nvme_rdma_post_send failed with error code -107'").Wait(t, 20*time.Second) == 0
}
