//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSettingsOfConnections has connections as the settings of both processes say.
func TestSettingsOfConnections(t *testing.T) {
	for _, tt := range []struct {
		ours, theirs Config
		dialect      mpa.Dialect
		crc, markers bool
	}{
		{Config{}, Config{}, mpa.DialectRFC6581, true, false},
		{Config{Dialect: mpa.DialectRFC5044}, Config{}, mpa.DialectRFC5044, true, false},
		{Config{Dialect: mpa.DialectRtr}, Config{Dialect: mpa.DialectRtr}, mpa.DialectRtr, true, false},
		{Config{Dialect: mpa.DialectStartKey}, Config{Dialect: mpa.DialectStartKey}, mpa.DialectStartKey, true, false},
		{Config{RNIC: iwarp.RNICConfig{CRC: iwarp.CRCUnwanted}}, Config{}, mpa.DialectRFC6581, true, false},
		{Config{RNIC: iwarp.RNICConfig{CRC: iwarp.CRCUnwanted}}, Config{RNIC: iwarp.RNICConfig{CRC: iwarp.CRCUnwanted}},
			mpa.DialectRFC6581, false, false},
		{Config{RNIC: iwarp.RNICConfig{Markers: true}}, Config{}, mpa.DialectRFC6581, true, true},
	} {
		client, server, _, _ := connectWith(t, tt.ours, tt.theirs)
		for _, q := range []*queue{client, server} {
			n := q.d.qps.get(q.qp).qp.Negotiated()
			want(t, "dialect", n.Dialect, tt.dialect)
			want(t, "CRCs", n.CRC, tt.crc)
		}
		want(t, "markers to the client", server.d.qps.get(server.qp).qp.Negotiated().MarkersSend, tt.markers)
	}
}

// TestDialectServed refuses a peer that starts in another dialect than the one of the setting.
func TestDialectServed(t *testing.T) {
	s, c := newProgramWith(t, Config{Dialect: mpa.DialectRtr}), newProgram(t)
	_, at := s.listen(1)
	client := c.queue()
	id := c.resolve(2, at)
	must(t, c.d.Connect(id, client.qp, ConnParam{ResponderResources: 1, InitiatorDepth: 1}))
	wait(t, c.events)
	e, errno := c.d.NextCM(c.channel)
	must(t, errno)
	if e.Type == Established || e.Status == 0 {
		t.Errorf("event %d with status %d", e.Type, e.Status)
	}
}

// TestRecording has in the file what was sent when its completion is there, as the process may end then; and of two
// that write the same file each has one of its own.
func TestRecording(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.pcapng")
	ours, err := Record(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Record(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{name, name + "." + strconv.Itoa(os.Getpid())}
	for _, file := range files {
		want(t, "packets before there is one", recorded(t, file), 0)
	}
	client, server, _, _ := connectWith(t, Config{Recording: ours}, Config{Recording: theirs})
	server.recv(1, server.region("......", accessLocalWrite))
	client.send(2, wrSend, client.region("abcdef", 0), nil)
	want(t, "status", client.completion().Status, 0)
	want(t, "status", server.completion().Status, 0)
	for _, file := range files {
		if n := recorded(t, file); n < 3+2+1 { // a handshake, a Request with its Reply, and the Send
			t.Errorf("%s: %d packets", file, n)
		}
	}
	if _, err := Record(filepath.Join(name, "x"), 0); err == nil {
		t.Error("a file in no directory")
	}
}

// TestRecordingDatagrams has in the file what was sent to another process, and what comes of it there.
func TestRecordingDatagrams(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.pcapng")
	var ends [2]*datagrams
	for i := range ends {
		r, err := Record(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = newProgramWith(t, Config{RoCE: true, Recording: r}).datagrams()
	}
	sender, receiver := ends[0], ends[1]
	receiver.room(1, 6)
	must(t, sender.post(sender.to(receiver.number, *sender.region("abcdef", 0).sge())))
	want(t, "status", receiver.completion().Status, 0)
	for _, file := range []string{name, name + "." + strconv.Itoa(os.Getpid())} {
		want(t, file, recorded(t, file), 1)
	}
}

func recorded(t *testing.T, name string) (packets int) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := capture.Open(file)
	for ; err == nil; packets++ {
		_, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	return packets - 1
}
