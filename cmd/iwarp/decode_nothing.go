package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// A portNumber is a port of TCP, SCTP or UDP.
type portNumber uint16

// UnmarshalText takes a number.
func (p *portNumber) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%.20q is not a number from 1 to 65535", text)
	}
	*p = portNumber(n)
	return nil
}

// unmatchedFilter is the error of a --filter that lets nothing through.
func unmatchedFilter(which string, n decode.Totals) error {
	if _, err := strconv.Atoi(which); err == nil {
		return usage("decode: --filter: there is no connection %s: the capture has %s", which, numbersOf(n.Connections))
	}
	if _, err := strconv.Atoi(strings.TrimPrefix(which, "s")); err == nil {
		return usage("decode: --filter: the capture has no session %s over SCTP", which)
	}
	return usage("decode: --filter: %q: it matches none of the TCP connections in the capture (%d), and no session over SCTP", which, n.Connections)
}

// numbersOf names so many connections by their numbers.
func numbersOf(n uint64) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "#0"
	}
	return fmt.Sprintf("#0 to #%d", n-1)
}

// unmatchedPort is the error of a --port that is no end's of what is in the capture. With --filter it is not known.
func (c *decodeCmd) unmatchedPort() error {
	if len(c.Port) == 0 || c.ported || c.Filter != "" {
		return nil
	}
	var all []string
	for _, p := range c.Port {
		all = append(all, strconv.Itoa(int(p)))
	}
	return usage("decode: --port: no connection to %s in the capture", strings.Join(all, " or "))
}

// unjudged is the error of a capture in which nothing could be judged: that is not as if nothing were wrong in it.
func unjudged(n decode.Totals) error {
	switch {
	case n.Connections+n.Associations == 0:
		return errors.New("decode: no TCP connection and no SCTP association in the capture")
	case n.IWARP+n.Sessions == 0:
		return errors.New("decode: no iWARP found: if you know its port, give --port")
	case n.Illegible < n.IWARP+n.Sessions:
		return nil
	case n.Cut > 0:
		return errors.New("decode: nothing of the iWARP connections could be read: capture again with tcpdump -s 0")
	}
	return errors.New("decode: nothing of the iWARP connections could be read: their findings say why")
}

// forgotten is the error of a capture with connections that were not followed to their ends.
func forgotten(n decode.Totals) error {
	if n.Evicted == 0 {
		return nil
	}
	return &ending{fmt.Errorf("decode: more than %d TCP connections were open at once, and %d not followed to the end: filter the capture, as by tcpdump -r FILE -w PART host HOST",
		capture.DefaultMaxConnections, n.Evicted), statusFailed}
}

// noCapture is what to do about a file that is no capture, or not a whole one.
func noCapture(err error) string {
	cut := new(capture.CutOffError)
	switch {
	case errors.As(err, new(*capture.FormatError)):
		return ": record one by tcpdump -w FILE, or by --pcap FILE of rping or conform"
	case errors.As(err, &cut) && cut.Packet == 1:
		return ": record again if its writer was stopped"
	case errors.As(err, &cut):
		return ": what is before it is shown; record again if its writer was stopped"
	}
	return ""
}
