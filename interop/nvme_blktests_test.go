//go:build interop

package interop_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const ourUUID = "91fdba0d-f87b-4c25-b80f-db7be1418b9e"

// nvmeCaseScript begins each case's script: the variables that it uses, the functions, and a host without connections.
func nvmeCaseScript(port string) string {
	return fmt.Sprintf("set -e\nNQN=%s UUID=%s PORT=%s\n", ourNQN, ourUUID, port) + nvmeCaseFunctions
}

// connect asks again where TCP had no place (EADDRNOTAVAIL): the port that rdma_cm drew is one that a connection before
// still holds.
const nvmeCaseFunctions = `modprobe nvme-rdma
once() { nvme connect -t rdma -a $PEER_IP -s $PORT -i 1 -l 120 -n "$@"; }
connect() { once "$@" || { dmesg | grep "rdma_connect_locked failed (-99)" && dmesg -c >/dev/null && once "$@"; }; }
named() { for u in /sys/block/nvme?n1/uuid; do [ ! -e $u ] || ! grep -q $UUID $u || basename $(dirname $u); done; }
attach() {
	connect $NQN "$@"
	until ns=$(named); [ -n "$ns" ] && [ -b /dev/$ns ]; do usleep 50000; done
	ctl=$(basename $(dirname $(grep -l "^$NQN$" /sys/class/nvme/nvme*/subsysnqn)))
}
gone() { while grep -q "^$NQN$" /sys/class/nvme/nvme*/subsysnqn 2>/dev/null; do usleep 50000; done; }
disconnect() { nvme disconnect -n $NQN; gone; }
state() { until [ "$(cat /sys/class/nvme/$ctl/state)" = $1 ]; do usleep 20000; done; }
verify() { fio --name=v --filename=/dev/$ns --size=2m --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 \
	--verify=crc32c --allow_file_create=0 --minimal >/tmp/fio.log 2>&1 || { cat /tmp/fio.log; exit 1; }; }
work() { fio --name=w --filename=/dev/$ns --size=8m --rw=randrw --bs=4k --norandommap --iodepth=16 --ioengine=libaio --direct=1 \
	--time_based --runtime=86400 --allow_file_create=0 >/dev/null 2>&1 || true; }
passthrough() {
	dd if=/dev/urandom of=/tmp/w bs=512 count=$2 2>/dev/null
	nvme write /dev/$ns --start-block $1 --block-count $(($2-1)) --data-size $(($2*512)) --data /tmp/w
	rm -f /tmp/r; nvme read /dev/$ns --start-block $1 --block-count $(($2-1)) --data-size $(($2*512)) --data /tmp/r
	cmp /tmp/w /tmp/r
}
disconnect >/dev/null 2>&1
dmesg -c >/dev/null
`

// TestNVMeCases has Linux's host ask of the command's disk what blktests' cases ask of a target.
func TestNVMeCases(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	d := &commandDisk{t: t, path: filepath.Join(t.TempDir(), "disk"), port: "0"}
	d.start()
	for i := range nvmeCases {
		c := &nvmeCases[i]
		t.Run(c.number, func(t *testing.T) {
			p := g.Start(t, nvmeCaseScript(d.port)+c.script+"\ndisconnect\necho CASE-DONE\n")
			d.follow(t, p)
			p.WantSuccess(t, 120*time.Second)
			p.WantOutput(t, "CASE-DONE")
		})
	}
	d.terminate()
}

// A commandDisk is a disk of the built command's, for all cases of a test.
type commandDisk struct {
	t          *testing.T
	path, port string
	*Proc
}

// start starts the command, at the same port as before.
func (d *commandDisk) start() {
	d.t.Helper()
	d.Proc, d.port = diskCommand(d.t, d.path, d.port, "--uuid", ourUUID)
}

// terminate ends the disk by SIGTERM.
func (d *commandDisk) terminate() {
	d.t.Helper()
	d.stop()
	if status := d.Wait(d.t, 30*time.Second); status != 0 {
		d.t.Errorf("after SIGTERM its status is %d", status)
	}
}

// follow ends the disk where a script says "DOWN" and a number, and starts it again where it says "UP" and that.
func (d *commandDisk) follow(t *testing.T, p *Proc) {
	for i := 1; p.said(fmt.Sprintf("DOWN %d\n", i)); i++ {
		d.terminate()
		if !p.said(fmt.Sprintf("UP %d\n", i)) {
			t.Errorf("the host does not notice that the target has ended, time %d", i)
		}
		d.start()
	}
}

// said waits until a program has said something, and reports whether it did before its end.
func (p *Proc) said(text string) bool {
	poll(120*time.Second, func() bool { return strings.Contains(p.Output(), text) || p.ended() })
	return strings.Contains(p.Output(), text)
}
