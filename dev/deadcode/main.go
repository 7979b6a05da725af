package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

// libraries are the packages whose exported functions are roots, by their paths within the module: the package iwarp is
// what others import, and conform/peer is what their tests do. Of every other package a command or iwarp runs what is exported, or [excused] says for whom it
// is.
var libraries = []string{"", "conform/peer"}

// forC are packages that C calls: what they export to it is a root.
var forC = []string{"programs/engine"}

// forTests are packages that only tests use.
var forTests = []string{"internal/testrig", "internal/peersim", "internal/e2e/rig"}

const (
	byConsumers = "for consumers that carry out the startup themselves, with iwarp.QP.ModifyRTS"
	byUpper     = "for consumers that write such private data"
	byTemplate  = "called by a template"
	byNoName    = "asked for by an interface that has no name"
	bySimulated = "for the peers of internal/peersim, as conform and probe have their own rules for what comes"
	bySinks     = "for Sinks of others: whether what they see is from the beginning"
	byTests     = "for tests of other implementations, each case of which is a test of its own"
	byRig       = "for tests, which have the connection by internal/testrig"
	byHosts     = "for hosts: iwarp disk only lists disks, reads and writes them"
	byStreams   = "for programs that use more of rsockets than iwarp cat does"
	byLoops     = "for programs with a loop of their own around poll"
	byMeasuring = "for programs that measure, as dev/compare does"
	byNetworks  = "for programs that make a network of their own"
)

// excused are functions that neither a command nor the package iwarp refers to, and why they are there.
var excused = map[node]string{
	"capture.Connection.Handshake":         bySinks,
	"capture.tap.NetConn":                  byNoName,
	"capture.tap.SetLinger":                byNoName,
	"capture/page.article.Heading":         byTemplate,
	"capture/page.found.Last":              byTemplate,
	"capture/page.row.Verdict":             byTemplate,
	"conform.RunCase":                      byTests,
	"conform.Summary.OK":                   "for tests of other implementations",
	"conform.Verdict.Because":              byTests,
	"internal/mempipe.Conn.Gone":           byRig,
	"internal/mempipe.Conn.SetLinger":      byNoName,
	"internal/mempipe.Conn.SetWriteBuffer": byRig,
	"internal/script.Link.NextSegment":     bySimulated,
	"internal/tcp.Buffered.NetConn":        byNoName,
	"mpa.Initiator.Dialect":                byConsumers,
	"mpa.Initiator.Done":                   byConsumers,
	"internal/ulpdata.RPCOverRDMA.Append":  byUpper,
	"internal/capsule.Features.Get":        "for hosts, whose Get Features nvmf/target answers",
	"notify.CQs":                           byLoops,
	"notify.Events":                        byLoops,
	"notify.Queue.Close":                   byLoops,
	"notify.Queue.Fd":                      byLoops,
	"notify.Queue.Get":                     byLoops,
	"nvmf/host.Controller.Queues":          byHosts,
	"nvmf/host.Dial":                       byHosts,
	"nvmf/host.Namespace.Discard":          byHosts,
	"nvmf/host.Namespace.Page":             byHosts,
	"nvmf/host.Namespace.WriteZeroes":      byHosts,
	"internal/procstat.Held":               "for dev/compare, and for tests of how much memory is held",
	"perf.Listen":                          byMeasuring,
	"programs.Library.Build":               "for programs that build the library themselves, as dev/compare does",
	"stream.Conn.Map":                      byStreams,
	"stream.Conn.SetKeepAlivePeriod":       byStreams,
	"stream.Dial":                          byStreams,
	"stream.Dialer.Initiate":               byStreams,
	"stream.ListenConfig.NewListener":      byStreams,
	"usertcp.Pair":                         byNetworks,
	"usertcp.TUN.Name":                     byNetworks,
}

func main() {
	err := checkout.Enter()
	var g *graph
	if err == nil {
		g, err = load(".", forC...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deadcode:", err)
		os.Exit(2)
	}
	findings := g.check(libraries, forTests, excused)
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// check returns a line for each function that is not reached, and for each excuse that is
// not needed.
func (g *graph) check(libraries, forTests []string, excused map[node]string) (found []string) {
	reached := g.reached(libraries, nil)
	for n := range excused {
		if _, ok := g.functions[n]; !ok || reached[n] {
			found = append(found, fmt.Sprintf("%s needs no excuse", n))
		}
	}
	reached = g.reached(libraries, excused)
	for n, f := range g.functions {
		if !reached[n] && !slices.Contains(forTests, f.pkg) {
			found = append(found, fmt.Sprintf("%s: nothing in the product calls it", n))
		}
	}
	slices.Sort(found)
	return found
}
