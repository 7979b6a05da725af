//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestTsharkULP has tshark read the messages of NFS and SMB in an exported capture, and compares xids, STags and statuses
// with what package decode says of them.
func TestTsharkULP(t *testing.T) {
	for _, c := range []struct {
		port   uint16
		names  string
		fields []string
		// said is what is said where tshark finds these values, separated by commas, one line for each message.
		said map[string]string
	}{
		{20049, "rpc-call-read rpc-reply-read rpc-call-open rpc-reply-grace rpc-call-dir",
			[]string{"rpcordma.xid", "rpc.msgtyp", "rpc.procedure", "nfs.nfsstat4"}, map[string]string{
				"0x00000011,0,6,":      "call xid 0x00000011: NFSv3 READ, write chunk of 65536 bytes at STag 0xaabb0001",
				"0x00000011,1,6,":      "reply xid 0x00000011: NFSv3 READ: OK",
				"0x00000012,0,1,":      "call xid 0x00000012: NFSv4 COMPOUND OPEN",
				"0x00000012,1,1,10013": "reply xid 0x00000012: NFSv4 COMPOUND: NFS4ERR_GRACE of OPEN",
				"0x00000014,0,16,":     "call xid 0x00000014: NFSv3 READDIR, reply chunk of 32768 bytes at STag 0xaabb0003",
			}},
		{5445, "smbd-req smbd-resp smb-read-req smb-read-resp smb-write-req smb-write-err",
			[]string{"smb2.cmd", "smb2.nt_status", "smb2.buffer_descriptor.token"}, map[string]string{
				"8,,0x44556601": "READ request 5, 65536 bytes at STag 0x44556601",
				"8,0x00000000,": "READ response 5: STATUS_SUCCESS",
				"9,,0x44556602": "WRITE request 6, 32768 bytes at STag 0x44556602",
				"9,0xc000007f,": "WRITE response 6: STATUS_DISK_FULL",
			}},
	} {
		ours, path := exportedULP(t, c.port, strings.Fields(c.names))
		for _, line := range tsharkFields(t, path, c.fields) {
			if said, known := c.said[line]; known && !ours[said] {
				t.Errorf("tshark finds %q, and nobody says %q", line, said)
			} else if known {
				delete(c.said, line)
			}
		}
		if len(c.said) > 0 {
			t.Errorf("tshark does not find %q", c.said)
		}
	}
}

// TestTsharkULPCaptures compares what is said of the stored captures of NFS and SMB with what tshark finds there.
func TestTsharkULPCaptures(t *testing.T) {
	for _, name := range []string{"siw-nfs4", "siw-nfs3"} {
		all, exported := heardIn(t, "testdata/captures/"+name+".pcap", nfsPort)
		all[0].wantSaid(t, nil)
		wantAsTshark(t, exported, all[0].lines)
	}
	all, exported := heardIn(t, "testdata/captures/siw-smb.pcap", 5445)
	all[0].wantSaid(t, nil)
	ours := strings.Join(all[0].lines, "; ") + ";"
	rows := tsharkFields(t, exported, []string{"smb2.cmd", "smb2.flags.response", "smb2.msg_id"})
	n := 0
	for _, row := range rows {
		f := strings.Split(row, ",")
		if f[0] == "" {
			continue // it is no end of a message
		}
		n++
		command, err := strconv.Atoi(f[0])
		testrig.Must(t, err)
		text := smb2Commands[command] + map[string]string{"0": " request ", "1": " response "}[f[1]] + f[2]
		if !regexp.MustCompile(text + `\b`).MatchString(ours) {
			t.Errorf("tshark finds %q, and nobody says so", text)
		}
	}
	if n < 60 {
		t.Errorf("tshark finds %d messages of SMB2", n)
	}
}

// smb2Commands are those that the capture has.
var smb2Commands = map[int]string{0: "NEGOTIATE", 1: "SESSION_SETUP", 2: "LOGOFF", 3: "TREE_CONNECT", 4: "TREE_DISCONNECT",
	5: "CREATE", 6: "CLOSE", 7: "FLUSH", 8: "READ", 9: "WRITE", 11: "IOCTL", 16: "QUERY_INFO", 17: "SET_INFO"}

// A sayer takes note of what the ULP says.
type sayer struct {
	*export.Exporter
	said map[string]bool
}

func (s sayer) ULP(_ *decode.Connection, u *decode.ULP) { s.said[u.Text] = true }

// exportedULP exports a capture of Sends, in turn from client and server.
func exportedULP(t *testing.T, port uint16, names []string) (said map[string]bool, path string) {
	path = filepath.Join(t.TempDir(), "ulp.pcapng")
	out, err := os.Create(path)
	testrig.Must(t, err)
	defer out.Close()
	e, err := export.New(out, export.Config{})
	testrig.Must(t, err)
	own := sayer{e, map[string]bool{}}
	_, err = decode.Run(bytes.NewReader(sends(t, port, names)), decode.Config{After: e.Packet}, own)
	testrig.Must(t, err)
	testrig.Must(t, e.Close())
	return own.said, path
}

// sends records Sends of revision 1, without CRCs, by the names of the messages.
func sends(t *testing.T, port uint16, names []string) []byte {
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	testrig.Must(t, err)
	now := time.Unix(1, 0)
	flow, err := w.Open(netip.MustParseAddrPort("10.0.0.1:40000"), netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port), now)
	testrig.Must(t, err)
	put := func(end int, b []byte) {
		now = now.Add(time.Millisecond)
		testrig.Must(t, flow.Send(capture.Dir(end), now, b))
	}
	var writers [2]mpa.Writer
	for end, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		put(end, mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, Rev: 1}))
		writers[end] = mpa.NewWriter(false, false)
	}
	vectors, err := os.ReadFile("../internal/ulp/testdata/vectors.txt")
	testrig.Must(t, err)
	for i, name := range names {
		_, text, ok := strings.Cut("\n"+string(vectors), "\n"+name+" ")
		text, _, _ = strings.Cut(text, "\n")
		b, err := hex.DecodeString(text)
		if err != nil || !ok {
			t.Fatal(name, err)
		}
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN = true, uint32(i/2+1)
		put(i%2, writers[i%2].Append(nil, h.Append(nil), b))
	}
	testrig.Must(t, w.Flush())
	return file.Bytes()
}

// tsharkFields returns fields of each exported packet, the last one of each name.
func tsharkFields(t *testing.T, path string, fields []string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-r", path, "-Y", "exported_pdu", "-T", "fields", "-E", "occurrence=l", "-E", "separator=,"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.CommandContext(ctx, "tshark", args...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		testrig.Lacks(t, err.Error())
	}
	testrig.Must(t, err)
	return strings.Fields(string(out))
}
