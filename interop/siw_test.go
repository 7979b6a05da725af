//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSiwParameters sets each of siw's constants, in both roles: the connection
// comes up and its data are right, or iwarp says what it was refused for.
func TestSiwParameters(t *testing.T) {
	t.Run("responder", func(t *testing.T) { tryTable(t, "parameters, siw as Responder", (*siwRig).toGuest) })
	t.Run("initiator", func(t *testing.T) { tryTable(t, "parameters, siw as Initiator", (*siwRig).fromGuest) })
}

// TestSiwDialects tries iwarp's dialects and kinds of RNIC on siw, in both roles.
func TestSiwDialects(t *testing.T) {
	t.Run("responder", func(t *testing.T) { tryTable(t, "dialects, siw as Responder", (*siwRig).toGuest) })
	t.Run("initiator", func(t *testing.T) { tryTable(t, "dialects, siw as Initiator", (*siwRig).fromGuest) })
}

// siwConstants are those of the unchanged driver.
const siwConstants = "mpa_version=2 mpa_crc_required=0 mpa_crc_strict=0 peer_to_peer=0 rtr_type=3 relaxed_ird_negotiation=1"

// A siwRig is a guest for all cases of a table, and what it sends and receives.
type siwRig struct {
	*Guest
	pcap string
	seen map[string]int // connections in the capture, by port
}

// bootSiwRig boots a guest whose driver's constants can be set.
func bootSiwRig(t *testing.T, o Options) *siwRig {
	t.Helper()
	o.SIW, o.Pcap = commas(siwConstants), filepath.Join(t.TempDir(), "guest.pcap")
	return &siwRig{Guest: Boot(t, o), pcap: o.Pcap, seen: make(map[string]int)}
}

// A siwTry leads the dialogue of a case, and returns what was seen of it on the wire.
type siwTry func(r *siwRig, t *testing.T, c *siwCase) (wire string)

// siwTries is how often more a case is tried of which something else comes than the document has.
const siwTries = 4

// tryTable runs the cases of a table in a guest of their own, over the host's TCP, and writes it with -update.
func tryTable(t *testing.T, table string, try siwTry) {
	t.Parallel()
	bootSiwRig(t, Options{}).try(t, table, try)
}

func (r *siwRig) try(t *testing.T, table string, try siwTry) {
	_, documented, _ := siwTable(t, table)
	update := *update && r.stack == nil // over both TCPs the same is wanted, and one of them is written
	var rows []string
	total := 0
	for _, c := range siwTables[table] {
		for _, siw := range eachSetting(c.siw) {
			total++
			t.Run(strings.TrimPrefix(commas(siw)+","+c.iwarp, ","), func(t *testing.T) {
				r.Set(t, strings.Trim(commas(siwConstants+" "+siw), ","))
				row := c.row(try(r, t, &c))
				for range siwTries {
					if update || slices.Contains(documented, row) {
						break
					}
					// A busy host may keep the guest's program from its part in time: once more, by itself.
					t.Logf("tried again, as this came of it:\n%s", row)
					row = c.row(try(r, t, &c))
				}
				if rows = append(rows, row); !update && !slices.Contains(documented, row) {
					t.Errorf("%s does not have this row (see -update):\n%s", siwDoc, row)
				}
			})
		}
	}
	if update && len(rows) == total { // not with a part of them
		writeSiwTable(t, table, slices.Compact(rows))
	}
}

// siwDocLock is held while the document is written.
var siwDocLock sync.Mutex

// writeSiwTable puts rows in place of a table's.
func writeSiwTable(t testing.TB, name string, rows []string) {
	t.Helper()
	siwDocLock.Lock()
	defer siwDocLock.Unlock()
	before, _, after := siwTable(t, name)
	testrig.Must(t, os.WriteFile(siwDoc, []byte(before+strings.Join(rows, "\n")+after), 0o644))
}

func commas(s string) string { return strings.ReplaceAll(s, " ", ",") }

// eachSetting returns what "a=1,2 b=3" stands for: "a=1 b=3" and "a=2 b=3".
func eachSetting(s string) []string {
	all := []string{""}
	for field := range strings.FieldsSeq(s) {
		name, values, _ := strings.Cut(field, "=")
		var longer []string
		for _, head := range all {
			for v := range strings.SplitSeq(values, ",") {
				longer = append(longer, strings.TrimSpace(head+" "+name+"="+v))
			}
		}
		all = longer
	}
	return all
}

const (
	pingCount = 2
	fromGuest = "hello-from-the-guest"
)

// toGuest connects to a server in the guest.
func (r *siwRig) toGuest(t *testing.T, c *siwCase) string {
	script := "rping -s -v"
	if c.echo {
		script = fmt.Sprintf("cmpd -S %d", rpingPort)
	}
	server := r.Serve(t, script)
	client := c.connect(t, r.Guest)
	if c.up == "" {
		client.WantFailure(t, 20*time.Second)
		client.WantOutput(t, c.refused)
	} else {
		c.wantData(t, client, server)
		wantNegotiated(t, client, strings.Fields(c.up)...)
	}
	return r.wire(t, fmt.Sprint(rpingPort))
}

// fromGuest has a client in the guest connect to iwarp.
func (r *siwRig) fromGuest(t *testing.T, c *siwCase) string {
	server, port := c.serve(t, r.Guest)
	script := rpingFrom(port, fmt.Sprintf("-C %d -v -V", pingCount))
	if c.echo {
		script = fmt.Sprintf("timeout -s KILL 60 cmpd -C $PEER_IP %s %s", port, fromGuest)
	}
	client := r.Start(t, script)
	if c.up == "" {
		server.WantOutput(t, c.refused)
		client.WantOutput(t, c.event)
	} else {
		c.wantData(t, client, server)
		wantNegotiated(t, server, strings.Fields(c.up)...)
	}
	return r.wire(t, port)
}

// wantData waits for both ends and checks that they have seen the same.
func (c *siwCase) wantData(t *testing.T, client, server *Proc) {
	t.Helper()
	client.WantSuccess(t, 20*time.Second)
	server.WantSuccess(t, 10*time.Second)
	if !c.echo {
		wantPings(t, client.Output(), server.Output(), pingCount, 64)
		return
	}
	sent, back := received(server), received(client)
	if sent != back || sent != hello && sent != fromGuest {
		t.Errorf("the server received %q, and the client %q back", sent, back)
	}
}

// received returns the message that a program of an echo says it got.
func received(p *Proc) string {
	for line := range strings.Lines(p.Output()) {
		if rest, ok := strings.CutPrefix(line, "RECEIVED "); ok {
			_, text, _ := strings.Cut(rest, ":")
			return strings.TrimSuffix(text, "\n")
		}
	}
	return ""
}
