//go:build interop

package interop_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const nfsPort = 20049

// nfsdScript has a guest's kernel serve /srv: on the wire to the other guest, and on rpingPort to iwarp probe. What
// mountd would tell the kernel is told here: who the client is, how /srv is exported (9234: insecure, async,
// no_subtree_check, fsid), and where the root's file handle is. The port is that of serveRPC.
func nfsdScript(port string) string {
	return fmt.Sprintf(`set -e
modprobe -a nfsd rpcrdma
mkdir -p /srv; mount -t tmpfs -o size=4m tmpfs /srv
mount -t nfsd nfsd /proc/fs/nfsd
cd /proc/net/rpc; far=9999999999
echo nfsd %s $far wire >auth.unix.ip/channel
echo wire /srv $far 9234 65534 65534 0 >nfsd.export/channel
echo 'wire 1 \x00000000' $far /srv >nfsd.fh/channel
nc -ll -p 111 -e nc $PEER_IP %s </dev/null >/dev/null 2>&1 &
until grep -qs ':006F .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
cd /proc/fs/nfsd
echo 10 >nfsv4leasetime; echo 10 >nfsv4gracetime
echo rdma %d >portlist; echo rdma %d >portlist
echo 2 >threads
`, otherIP, port, nfsPort, rpingPort)
}

// nfsScript has a client mount /srv with options, and do what wantNFS4 and wantNFS3 are about.
func nfsScript(path, options string) string {
	return fmt.Sprintf(`set -e
fails() { if "$@"; then exit 1; fi; }
mkdir -p /mnt
timeout 60 mount -t nfs -o proto=rdma,port=%d,%s,addr=%s %[3]s:%s /mnt
mkdir /mnt/dir
fails cat /mnt/nothing
dd if=/dev/urandom of=/tmp/data bs=64k count=48
cp /tmp/data /mnt/dir/data
echo 3 >/proc/sys/vm/drop_caches
cmp /tmp/data /mnt/dir/data
fails rmdir /mnt/dir
ls -lR /mnt; mv /mnt/dir/data /mnt/data
fails dd if=/dev/zero of=/mnt/full bs=1M count=2
rm -r /mnt/*; umount /mnt
`, nfsPort, options, guestIP, path)
}

// wantNFS4 and wantNFS3 are what is said of it, as patterns in the order of the capture.
var (
	wantNFS4 = []string{`call xid (\w+): NFSv4 COMPOUND EXCHANGE_ID, reply chunk of \d+ bytes at STag (\w+)`,
		`Write to STag \w+: reply chunk of xid \w+, NFSv4 COMPOUND EXCHANGE_ID`, `in the reply chunk: NFSv4 COMPOUND: OK`,
		`call xid \w+: NFSv4 COMPOUND CREATE$`, `NFSv4 COMPOUND: NFS4ERR_GRACE of OPEN`, `NFSv4 COMPOUND: NFS4ERR_NOENT of OPEN`,
		`call xid \w+: NFSv4 COMPOUND WRITE, read chunk of \d+ bytes at STag`, `Read of STag \w+: read chunk of xid \w+, NFSv4 COMPOUND WRITE`,
		`call xid \w+: NFSv4 COMPOUND CLOSE`, `call xid \w+: NFSv4 COMPOUND READ, write chunk of \d+ bytes at STag`,
		`Write to STag \w+: write chunk of xid \w+, NFSv4 COMPOUND READ`, `NFS4ERR_NOTEMPTY of REMOVE`, `NFSv4 COMPOUND READDIR, reply chunk`,
		`NFSv4 COMPOUND RENAME`, `NFS4ERR_NOSPC of WRITE`, `NFSv4 COMPOUND DESTROY_SESSION`}
	wantNFS3 = []string{`call xid \w+: NFSv3 FSINFO`, `in the reply chunk: NFS_ACL GETACL: OK`, `NFSv3 MKDIR: OK`,
		`NFSv3 LOOKUP: NFS3ERR_NOENT`, `NFSv3 WRITE, read chunk of \d+ bytes at STag`, `Read of STag \w+: read chunk of xid \w+, NFSv3 WRITE`,
		`NFSv3 READ, write chunk of \d+ bytes at STag`, `Write to STag \w+: write chunk of xid \w+, NFSv3 READ`,
		`NFSv3 RMDIR: NFS3ERR_NOTEMPTY`, `in the reply chunk: NFSv3 READDIRPLUS: OK`, `NFSv3 RENAME: OK`, `NFSv3 WRITE: NFS3ERR_NOSPC`}
)

// testNFS mounts files by NFS over RDMA, of version 4.2 and of version 3. Package decode says of each message what it is,
// and tshark finds the same calls, replies and statuses.
func (p *pair) testNFS(t *testing.T) {
	port := serveRPC(t)
	p.client.Start(t, "modprobe -a nfsv3 nfsv4 rpcrdma").WantSuccess(t, 60*time.Second) // before the grace period begins
	p.server.Start(t, nfsdScript(port)).WantSuccess(t, 60*time.Second)
	p.client.Start(t, nfsScript("/", "vers=4.2,clientaddr="+otherIP)).WantSuccess(t, 120*time.Second)
	p.client.Start(t, nfsScript("/srv", "vers=3,nolock,mountproto=tcp,mountaddr=$PEER_IP,mountport="+port)).WantSuccess(t, 120*time.Second)
	all, exported := heardIn(t, p.pcap, nfsPort)
	if len(all) != 2 {
		t.Fatalf("%d connections", len(all))
	}
	all[0].wantSaid(t, wantNFS4)
	all[1].wantSaid(t, wantNFS3)
	wantAsTshark(t, exported, slices.Concat(all[0].lines, all[1].lines))
	p.wantProbed(t)
	p.server.Start(t, "echo 0 >/proc/fs/nfsd/threads").WantSuccess(t, 20*time.Second)
}

// nfsStatuses are the names of those that the scripts meet.
var nfsStatuses = map[string]string{"2": "NOENT", "28": "NOSPC", "66": "NOTEMPTY", "10013": "GRACE"}

// wantAsTshark compares calls, replies and their statuses with what tshark finds.
func wantAsTshark(t *testing.T, exported string, lines []string) {
	t.Helper()
	var ours, theirs []string
	for _, l := range lines {
		if m := rpcLine.FindStringSubmatch(l); m != nil {
			ours = append(ours, m[1]+" "+m[2]+" "+m[3])
		}
	}
	for _, row := range tsharkFields(t, exported, []string{"rpc.xid", "rpc.msgtyp", "nfs.nfsstat4", "nfs.status"}) {
		f := strings.Split(row, ",")
		switch {
		case f[1] == "0":
			theirs = append(theirs, "call "+f[0]+" ")
		case f[1] == "1":
			theirs = append(theirs, "reply "+f[0]+" "+nfsStatuses[cmp.Or(f[2], f[3])])
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if d := gocmp.Diff(ours, theirs); d != "" || len(ours) < 50 {
		t.Errorf("%d calls and replies; tshark differs (-ours +tshark's):\n%s", len(ours), d)
	}
}

// rpcLine is a line of a call or a reply: its xid, and the name of a status.
var rpcLine = regexp.MustCompile(`^(call|reply) xid (0x\w+)(?:.*: NFS\dERR_(\w+))?`)
