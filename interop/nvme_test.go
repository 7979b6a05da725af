//go:build interop

package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// nvmetScript has the guest's kernel serve a file of so many MiB as namespace 1 of nqn.linux, on rpingPort.
func nvmetScript(mib int) string {
	return fmt.Sprintf(`set -e
modprobe -a nvme-rdma nvmet-rdma loop
mount -t configfs none /sys/kernel/config 2>/dev/null || true
truncate -s %dM /tmp/backend; losetup /dev/loop0 /tmp/backend
cd /sys/kernel/config/nvmet
mkdir subsystems/nqn.linux; cd subsystems/nqn.linux; echo 1 >attr_allow_any_host
mkdir namespaces/1; echo -n /dev/loop0 >namespaces/1/device_path; echo 1 >namespaces/1/enable
cd ../../ports; mkdir 1; cd 1
echo rdma >addr_trtype; echo ipv4 >addr_adrfam; echo $GUEST_IP >addr_traddr; echo %d >addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/nqn.linux subsystems/
`, mib, rpingPort)
}

// TestNVMeRig has Linux's host use Linux's target, to tell a broken rig from a broken iwarp.
func TestNVMeRig(t *testing.T) {
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	g.Start(t, nvmetScript(16)).WantSuccess(t, 60*time.Second)
	p := g.Start(t, fmt.Sprintf(`set -e
nvme discover -t rdma -a $GUEST_IP -s %[1]d
nvme connect -t rdma -a $GUEST_IP -s %[1]d -n nqn.linux
until [ -e /dev/nvme0n1 ]; do usleep 50000; done
dd if=/dev/urandom of=/tmp/data bs=1M count=4; dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct
echo READ $(dd if=/dev/nvme0n1 bs=64k count=64 iflag=direct | sha256sum) WROTE $(sha256sum </tmp/data)
nvme disconnect -n nqn.linux`, rpingPort))
	p.WantSuccess(t, 120*time.Second)
	p.WantOutput(t, "subnqn:  nqn.linux")
	for line := range strings.Lines(p.Output()) {
		var read, wrote string
		if n, _ := fmt.Sscanf(line, "READ %64s - WROTE %64s", &read, &wrote); n == 2 && read == wrote {
			return
		}
	}
	t.Error("what was read is not what was written")
}
