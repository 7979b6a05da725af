package perf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// helloVersion changes whenever the two ends would misunderstand each other.
const helloVersion = 7

// A hello is the private data of a connection request: who it is from, and
// what must be known before the connection is up.
//
//	0       4        5       6       8          16      18
//	+-------+--------+-------+-------+----------+-------+
//	| magic | vers.  | flags | index | session  | reads |
//	+-------+--------+-------+-------+----------+-------+
//
// A connection of plain TCP begins with one, too: see plain.go.
type hello struct {
	control bool
	plain   bool // TCP
	markers bool
	noCRC   bool
	index   uint16 // of the connection
	session uint64
	reads   mpa.Depth // IRD and ORD
}

const (
	helloMagic = "iwpf"
	helloLen   = 18

	flagControl = 1 << 0
	flagMarkers = 1 << 1
	flagNoCRC   = 1 << 2
	flagPlain   = 1 << 3
)

// errNotPerf is what private data that is not a hello parses to.
var errNotPerf = errors.New("perf: the connection request is not one of iwarp perf")

// A versionError is the version of another end that this one would misunderstand.
type versionError byte

func (e versionError) Error() string {
	return fmt.Sprintf("perf: the other end speaks version %d of the measurement protocol, this one version %d",
		byte(e), helloVersion)
}

func (h hello) encode() []byte {
	b := append(make([]byte, 0, helloLen), helloMagic...)
	b = append(b, helloVersion, h.flags())
	b = binary.BigEndian.AppendUint16(b, h.index)
	b = binary.BigEndian.AppendUint64(b, h.session)
	return binary.BigEndian.AppendUint16(b, uint16(h.reads))
}

func (h hello) flags() byte {
	return flag(h.control, flagControl) | flag(h.plain, flagPlain) | flag(h.markers,
		flagMarkers) | flag(h.noCRC, flagNoCRC)
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// helloOf finds the hello in a request. It follows the depths if the initiator
// connects as it would to a peer that wants them there.
func helloOf(req *iwarp.Request) (hello, error) {
	b := req.PrivateData()
	h, err := parseHello(b)
	if errors.Is(err, errNotPerf) && req.MPA().Dialect == mpa.DialectRFC5044 && len(b) > ulpdata.SMBDirectLen {
		return parseHello(b[ulpdata.SMBDirectLen:])
	}
	return h, err
}

func parseHello(b []byte) (hello, error) {
	if len(b) < 5 || string(b[:4]) != helloMagic {
		return hello{}, errNotPerf
	}
	if b[4] != helloVersion {
		return hello{}, versionError(b[4])
	}
	if len(b) < helloLen {
		return hello{}, errNotPerf
	}
	return hello{
		control: b[5]&flagControl != 0,
		plain:   b[5]&flagPlain != 0,
		markers: b[5]&flagMarkers != 0,
		noCRC:   b[5]&flagNoCRC != 0,
		index:   binary.BigEndian.Uint16(b[6:]),
		session: binary.BigEndian.Uint64(b[8:]),
		reads:   mpa.Depth(binary.BigEndian.Uint16(b[16:])),
	}, nil
}
