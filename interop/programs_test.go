//go:build interop

package interop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/programs"
)

// A unmodified is a program of libibverbs and librdmacm with one end on the host, where our library serves it, and the
// other in the guest, over siw. PORT and PEER stand for what its peer has.
type unmodified struct {
	server, client string
	says           string // what the client prints, at least
	endless        bool   // the server goes on for ever
	hasty          bool   // the client leaves when it has sent, before siw need have read anything
}

// unmodifieds are shown in both roles. rping's, rstream's and riostream's compare the data, and so does that of fio's
// with a pattern.
var unmodifieds = slices.Concat(others, perftests(), disks)

var others = []unmodified{
	{"rping -s -C 20 -V -p PORT", "rping -c -a PEER -p PORT -C 20 -V -v", "rdma-ping-19:", false, false},
	{"rping -s -P -p PORT", "rping -c -a PEER -p PORT -C 5 -V -S 60000", "", true, false},
	{"rdma_server -p PORT", "rdma_client -s PEER -p PORT", "rdma_client: end 0", false, false},
	{"rdma_xserver -p PORT", "rdma_xclient -s PEER -p PORT", "rdma_xclient: end 0", false, true},
	{"ucmatose -p PORT -c 5", "ucmatose -s PEER -p PORT -c 5", "return status 0", false, false},
	{"cmtime -p PORT", "cmtime -s PEER -p PORT -c 20", "connect", true, false},
	{"rstream -p PORT -T v -S 65536 -C 20", "rstream -s PEER -p PORT -T v -S 65536 -C 20", "64k", false, false},
	{"riostream -p PORT -T v -S 65536 -C 20", "riostream -s PEER -p PORT -T v -S 65536 -C 20", "64k", false, false},
}

// perftests are those of perftest at several sizes. -a, which is all of them, has a program fill 16 MiB byte by byte
// in the middle of connecting, for which the emulated processor takes longer than either end waits.
func perftests() (all []unmodified) {
	for _, size := range []int{2, 4096, 64 << 10, 1 << 20} {
		for _, program := range []string{"ib_write_bw -R", "ib_send_bw -R", "ib_read_bw -R", "ib_read_bw -R -e"} {
			all = append(all, perftest(fmt.Sprintf("%s -F -n 50 -s %d", program, size), fmt.Sprint(size)))
		}
		for _, program := range []string{"ib_write_lat -R", "ib_send_lat -R", "ib_send_lat -R -e",
			"ib_read_lat -R", "ib_read_lat -R -e"} {
			all = append(all, perftest(fmt.Sprintf("%s -F -n 20 -s %d", program, size), "t_typical"))
		}
	}
	return all
}

func perftest(line, says string) unmodified {
	line += " -p PORT"
	return unmodified{server: line, client: line + " PEER", says: says}
}

var disks = []unmodified{
	{fioServer + " --iodepth=8", fioClient + " --iodepth=8 --verb=write", "err= 0", false, false},
	{fioServer + " --iodepth=8", fioClient + " --iodepth=8 --verb=read", "err= 0", false, false},
	{fioServer + " --iodepth=64" + fioPattern, fioClient + " --iodepth=1 --verb=send" +
		fioPattern, "err= 0", false, false},
}

// fio's server looks for the pattern in what Sends bring; of what Writes and Reads carry it looks at nothing. It has no
// flow control: to be sure of the Sends the server has a receive for each, for which the client waits half a second.
const (
	fioServer  = "fio --name=s --ioengine=rdma --rw=read --port=PORT --bs=64k --size=4m"
	fioClient  = "fio --name=c --ioengine=rdma --rw=write --hostname=PEER --port=PORT --bs=64k --size=4m"
	fioPattern = " --verify=pattern --verify_pattern=0x5a --verify_state_save=0"
)

// programTime bounds a program: the guest's processor is an emulated one.
const programTime = 90 * time.Second

// TestProgramsToGuest: clients on our library, and servers over siw.
func TestProgramsToGuest(t *testing.T) {
	run := library(t)
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	for _, p := range unmodifieds {
		t.Run(p.client, func(t *testing.T) {
			for range 10 {
				server, client := p.toGuest(t, g, run)
				if !p.leftEarly(t, server, client) {
					p.judge(t, server, client)
					return
				}
				server.Stop(t)
				client.Stop(t)
			}
			t.Error("the client was left alone each time")
		})
	}
}

func (p *unmodified) toGuest(t *testing.T, g *Guest, run runner) (server, client *Proc) {
	t.Helper()
	// siw lets a listener of the program before go some time after that has ended.
	g.Start(t, until("! "+served)).WantSuccess(t, 20*time.Second)
	server = g.Start(t, strings.ReplaceAll(p.server, "PORT", fmt.Sprint(rpingPort)))
	g.Start(t, until(served)).WantSuccess(t, 20*time.Second)
	await := func() error { return nil }
	if strings.HasPrefix(p.client, "ib_") {
		await = g.anew()
	}
	port := relayTo(t, g.server(), await)
	return server, run(t, p.settings(), strings.NewReplacer("PORT", port, "PEER", "127.0.0.1").Replace(p.client))
}

// settings are those of the client on our library. The kernel of siw crashes where a connection in the peer-to-peer
// model ends before it has worked on the RTR indication (docs/interop.md): revision 1 has none.
func (p *unmodified) settings() string {
	if p.hasty {
		return "IWARP_DIALECT=rfc5044"
	}
	return ""
}

// leftEarly reports whether the server of rsockets has ended in success, and its client waits for what it was sent
// last. The server leaves when its TCP has that: the memory for the peer's credits goes first, and then the QP. A
// client that has read little by then and grants room for more hears by a reset that nobody takes it, with which what
// it has not read is lost. Nothing wakes rsockets' programs then (docs/interop.md).
func (p *unmodified) leftEarly(t *testing.T, server, client *Proc) bool {
	t.Helper()
	if !strings.Contains(p.client, "stream ") {
		return false
	}
	server.WantSuccess(t, programTime)
	return !poll(20*time.Second, client.ended)
}

// TestProgramsFromGuest: clients over siw, and servers on our library.
func TestProgramsFromGuest(t *testing.T) {
	run := library(t)
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	for _, p := range unmodifieds {
		t.Run(p.client, func(t *testing.T) {
			for range 10 {
				server, client := p.fromGuest(t, g, run)
				if !p.leftEarly(t, server, client) {
					p.judge(t, server, client)
					return
				}
				client.Stop(t)
			}
			t.Error("the client was left alone each time")
		})
	}
}

func (p *unmodified) fromGuest(t *testing.T, g *Guest, run runner) (server, client *Proc) {
	t.Helper()
	port := freePort(t)
	server = run(t, "", strings.ReplaceAll(p.server, "PORT", port))
	if !poll(20*time.Second, func() bool { return listening(port) || server.ended() }) || server.ended() {
		t.Fatalf("%s: does not listen", server.name)
	}
	port = relayTo(t, "127.0.0.1:"+port, func() error { return nil })
	return server, g.Start(t, strings.NewReplacer("PORT", port, "PEER", "$PEER_IP").Replace(p.client))
}

func (p *unmodified) judge(t *testing.T, server, client *Proc) {
	t.Helper()
	client.WantSuccess(t, programTime)
	if !strings.Contains(client.Output(), p.says) {
		t.Errorf("%s does not say %q", client.name, p.says)
	}
	if p.endless {
		server.Stop(t)
	} else {
		server.WantSuccess(t, programTime)
	}
}

// served is whether something listens on rpingPort, by IPv4 or IPv6.
const served = `cat /proc/net/tcp /proc/net/tcp6 | grep -q ":1C06 0*:0000 0A"`

// until is a script that waits for a condition in the guest.
func until(condition string) string {
	return fmt.Sprintf("timeout 15 sh -c 'until %s; do usleep 50000; done'", condition)
}

// TestProgramsDocumented: programs/results.json has a line for each, and no others of these tests.
func TestProgramsDocumented(t *testing.T) {
	b, err := os.ReadFile("../programs/results.json")
	testrig.Must(t, err)
	var all []struct{ Test, Program string }
	testrig.Must(t, json.Unmarshal(b, &all))
	var have, want []string
	for _, r := range all {
		if r.Test == "interop.TestPrograms" {
			have = append(have, r.Program)
		}
	}
	for _, p := range unmodifieds {
		want = append(want, strings.NewReplacer(" -p PORT", "", " --port=PORT", "", "PEER", "IP").Replace(p.client))
	}
	if !slices.Equal(have, want) {
		t.Errorf("programs/results.json has %q, want %q", have, want)
	}
}

// A runner runs a program on our library, with more settings if there are some.
type runner func(t testing.TB, settings, line string) *Proc

// library builds the library for programs.
func library(t *testing.T) runner {
	t.Helper()
	needIwarp(t)
	l := programs.Library{Dir: t.TempDir()}
	err := l.Build(t.Context(), "(devel)")
	if need := (*programs.NeedError)(nil); errors.As(err, &need) {
		testrig.Lacks(t, err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB, settings, line string) *Proc {
		t.Helper()
		args := append([]string{"IWARP_LIBRARY=" + l.Dir, "IWARP_PEER=siw"}, strings.Fields(settings)...)
		args = append(args, os.Getenv("IWARP_BIN"), "run")
		return startHost(t, "env", append(args, strings.Fields(line)...)...)
	}
}
