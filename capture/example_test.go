package capture_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/goiwarp/iwarp/capture"
)

// A printer says how connections begin and end, and what is missing.
type printer struct{}

func (printer) Opened(c *capture.Connection)                  { fmt.Println(c) }
func (printer) Segment(*capture.Connection, *capture.Segment) {}
func (printer) Data(*capture.Connection, capture.Data)        {}
func (printer) Forgotten(*capture.Connection)                 {}
func (printer) Skipped(p *capture.Packet, why capture.Skip)   {}
func (printer) Gap(_ *capture.Connection, g capture.Gap) {
	fmt.Printf("%v %d bytes missing at %d: %v\n", g.Dir, g.Length, g.Offset, g.Cause)
}
func (printer) Ended(_ *capture.Connection, e capture.End) {
	fmt.Printf("%v %d bytes up to packet %d: %v\n", e.Dir, e.Offset, e.Packet.Number, e.Reason)
}

func Example() {
	file, err := os.Open("../interop/testdata/captures/siw-rping-crc-client.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	r, err := capture.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	t := capture.NewTracker(capture.Config{}, printer{})
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		t.Packet(p)
	}
	t.Flush()
	// Output:
	// 192.168.77.2:60890 -> 192.168.77.3:1
	// -> 3 bytes up to packet 16: FIN
	// <- 0 bytes up to packet 17: FIN
	// 192.168.77.3:49338 -> 192.168.77.2:7174
	// -> 352 bytes up to packet 44: FIN
	// <- 456 bytes up to packet 45: FIN
}
