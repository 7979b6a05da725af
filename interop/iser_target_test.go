//go:build interop

package interop_test

import (
	"testing"
	"time"
)

// lioScript has a guest's kernel serve a disk of 16 MiB by iSER. LIO also listens on the same port of TCP, in a network
// namespace where siw does not find it in its way.
const lioScript = `set -e
modprobe -a iscsi_target_mod ib_isert
mount -t configfs none /sys/kernel/config 2>/dev/null || true
mkdir -p /var/target; cd /sys/kernel/config/target
mkdir -p core/rd_mcp_0/disk; echo rd_pages=4096 >core/rd_mcp_0/disk/control; echo 1 >core/rd_mcp_0/disk/enable
t=iscsi/` + ourIQN + `/tpgt_1
mkdir -p $t/lun/lun_0; ln -s /sys/kernel/config/target/core/rd_mcp_0/disk $t/lun/lun_0/port
cd $t/attrib; echo 0 >authentication; echo 0 >demo_mode_write_protect; echo 1 >cache_dynamic_acls
cd ../np; portal=` + guestIP + ":" + iserPort + `
unshare -n sh -c "/usr/bin/ip addr add ` + guestIP + `/32 dev lo; ip link set lo up; mkdir $portal"
echo 1 >$portal/iser; echo 1 >../enable
`

// admitScript lets any initiator in.
const admitScript = "echo 1 >/sys/kernel/config/target/iscsi/" + ourIQN + "/tpgt_1/attrib/generate_node_acls"

const isNode = `node="-m node -T ` + ourIQN + ` -p ` + guestIP + ":" + iserPort + `"; `

// refusedScript has an initiator try to log in.
const refusedScript = `set -e
modprobe -a ib_iser sd_mod crct10dif_generic
iscsid
` + isNode + `iscsiadm $node -I iser --op new
if timeout 60 iscsiadm $node -I iser --login; then exit 1; fi
`

// blockScript has it log in, write blocks and read them.
const blockScript = `set -e
` + isNode + `timeout 60 iscsiadm $node -I iser --login
timeout 20 sh -c 'until [ -e /dev/sda ]; do usleep 50000; done'
dd if=/dev/urandom of=/tmp/blocks bs=64k count=16
dd if=/tmp/blocks of=/dev/sda bs=64k oflag=direct
dd if=/dev/sda of=/tmp/back bs=64k count=16 iflag=direct
cmp /tmp/blocks /tmp/back
timeout 60 iscsiadm $node --logout
`

// wantISER is what is said of it.
var wantISER = []string{`^Login Request, task`, `^Login Response, task \w+$`, `^SCSI Command INQUIRY, task (\w+)`,
	`^Write to STag \w+: data of SCSI Command INQUIRY, task`, `MAINTENANCE IN: CHECK CONDITION, ILLEGAL REQUEST$`,
	`^SCSI Command WRITE\(10\) of 128 blocks at 0, task`, `^Read of STag \w+: data of SCSI Command WRITE\(10\)`,
	`^SCSI Response, task \w+, WRITE\(10\) of 128 blocks at \d+$`, `^SCSI Command READ\(10\) of \d+ blocks at 0, task`,
	`^Write to STag \w+: data of SCSI Command READ\(10\)`, `^Logout Response`}

// testISER has Linux's initiator use LIO.
func (p *pair) testISER(t *testing.T) {
	p.server.Start(t, lioScript).WantSuccess(t, 60*time.Second)
	p.client.Start(t, refusedScript).WantSuccess(t, 90*time.Second)
	p.server.Start(t, admitScript).WantSuccess(t, 20*time.Second)
	p.client.Start(t, blockScript).WantSuccess(t, 120*time.Second)
	all, _ := heardIn(t, p.pcap, 3260)
	if len(all) != 2 {
		t.Fatalf("%d connections", len(all))
	}
	all[0].wantSaid(t, []string{`^Login Request, task`, `^Login Response, task \w+: login status 0x0202, authorization failure$`})
	all[1].wantSaid(t, wantISER)
	if n := all[1].Connection.ULP.Failures; n > 0 {
		t.Errorf("%d failures in a session without any", n)
	}
}
