//go:build linux && interposer

package programs

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// An exchange is what rstream and riostream do, by their options.
type exchange struct{ testrig.Rstream }

func (x *exchange) parse(t *testing.T, options string) {
	t.Helper()
	words := strings.Fields(options)
	for i, word := range words {
		if word == "-S" || word == "-C" {
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				t.Fatal(err)
			}
			*map[string]*int{"-S": &x.Size, "-C": &x.Count}[word] = n
		}
	}
}

// swap is what the ends of riostream do with -C 1 beside greeting each other: they write into each other's memory by
// turns, of which the last byte counts the turns, and the others count up. They need no message: each looks at its
// last byte. The client has the first turn.
func (x *exchange) swap(conn *stream.Conn, mine *stream.Mapping, first bool, iterations int) error {
	var up [2]byte // what the next byte is, of the peer's and of ours
	for turn := range 2 * iterations {
		if (turn%2 == 0) == first {
			if _, err := conn.WriteAt(append(counting(&up[1], x.Size-1), byte(turn)), 0); err != nil {
				return fmt.Errorf("turn %d: %w", turn, err)
			}
			continue
		}
		got := make([]byte, x.Size)
		for got[x.Size-1] = byte(turn) + 1; got[x.Size-1] != byte(turn); {
			if _, err := mine.ReadAt(got, 0); err != nil {
				return err
			}
			runtime.Gosched()
		}
		if !bytes.Equal(got[:x.Size-1], counting(&up[0], x.Size-1)) {
			return fmt.Errorf("turn %d: the bytes differ", turn)
		}
	}
	return nil
}

func counting(from *byte, n int) []byte {
	all := make([]byte, n, n+1)
	for i := range all {
		all[i] = *from
		*from++
	}
	return all
}

// first is testdata/first.c: a fork beside the first call, and what that call does to limits of the process.
func (l Library) first(t *testing.T) { l.compiled(t, "first", pair...) }

// scarce is testdata/scarce.c: a process without descriptors, or without /dev/null; and scarce_cm.c: one that connects
// with a few.
func (l Library) scarce(t *testing.T) {
	l.compiled(t, "scarce", pair...)
	l.compiled(t, "scarce_cm", pair...)
}

// churn is testdata/churn.c: forks while threads hold locks.
func (l Library) churn(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "churn", append(pair, "-D_GNU_SOURCE")...)
}

// canceled is testdata/canceled.c: threads that are canceled leave nothing locked.
func (l Library) canceled(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "canceled", pair...)
}

// destroyed is testdata/destroyed.c: a thread that waits for events of a channel that another one destroys is told of
// nothing.
func (l Library) destroyed(t *testing.T) {
	l.compiled(t, "destroyed", append([]string{"-rdynamic"}, pair...)...)
}

// restarted is testdata/restarted.c: calls that wait for events are interrupted as a read is.
func (l Library) restarted(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "restarted", pair...)
}

// unready is testdata/rnr.c: rnr_retry_count says whether a Send waits for its receive. If not, the program reads once how
// to run it so that it does.
func (l Library) unready(t *testing.T) {
	const advice = "found no posted receive, which ended the connection: with iwarp run --as roce"
	said := func(as Guise, retries ...string) string {
		t.Setenv(guiseVariable, string(as))
		return l.compiledWith(t, "rnr", retries, pair...).out.String()
	}
	for _, out := range []string{said(IWARP, "7"), said(IWARP), said(RoCE, "0")} {
		if out != "rnr: received\n" {
			t.Errorf("with retries, or as RoCE:\n%s", out)
		}
	}
	if out := said(IWARP, "0"); !strings.Contains(out, "rnr: ended") || strings.Count(out, advice) != 1 {
		t.Errorf("without retries:\n%s", out)
	}
}

// refused is testdata/refused.c: what ibv_modify_qp refuses is in the log with the reason; and who connects by itself
// as an iWARP device reads once, and without a log, how to run that. So does who asks librdmacm for datagrams.
func (l Library) refused(t *testing.T) {
	const advice, roce = "for which there is iwarp run --as roce", string(RoCE)
	said := func(as, log string) string {
		t.Setenv(guiseVariable, as)
		t.Setenv("IWARP_LOG", log)
		return l.compiledWith(t, "refused", []string{as}, pair...).out.String()
	}
	if out := said(string(IWARP), ""); strings.Count(out, advice) != 1 || strings.Contains(out, "call refused") {
		t.Errorf("as iWARP:\n%s", out)
	}
	if out := said(roce, ""); out != "refused: ok\n" {
		t.Errorf("as RoCE:\n%s", out)
	}
	datagrams := start(t, l, "udaddy -s 127.0.0.1")
	datagrams.await(t)
	if out := datagrams.out.String(); strings.Count(out, "no datagrams of librdmacm") != 1 {
		t.Errorf("of datagrams:\n%s", out)
	}
	logged := said(string(IWARP), "connection") + said(roce, "connection")
	for _, cause := range []string{
		"iWARP has no Send with Immediate Data (IBV_QP_EX_WITH_SEND_WITH_IMM)",
		"no way leads from INIT to RTS but a connection of librdmacm's",
		"there is no transition from INIT to RTS", "the transition needs IBV_QP_AV IBV_QP_RQ_PSN",
		"the transition does not take IBV_QP_QKEY",
		"cur_qp_state is RTS, and the QP is in INIT",
		"dest_qp_num 0x4d is not that of a QP of iwarp run, or librdmacm connects this QP",
		"the transition does not take 0x40000000", "path_mtu is 9, and may be from 1 to 5",
		"there is no GID of sgid_index 63", "no way leads from INIT to SQD",
	} {
		if !strings.Contains(logged, `cause="`+cause+`"`) {
			t.Errorf("no record says %q", cause)
		}
	}
	if t.Failed() {
		t.Log(logged)
	}
}
