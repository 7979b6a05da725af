package decode_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
)

// BenchmarkRun decodes a capture of Writes with CRCs, one FPDU in a segment.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name    string
		markers bool
		payload int
	}{{"aligned", false, 1400}, {"large", false, 60000}, {"markers", true, 1380}} {
		b.Run(c.name, func(b *testing.B) {
			file := bulk(b, c.markers, c.payload, 8<<20)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				totals, err := decode.Run(bytes.NewReader(file), decode.Config{}, decode.Ignore{})
				if err != nil || totals.IWARP != 1 || totals.Findings[decode.Error] != 0 {
					b.Fatal(totals, err)
				}
			}
		})
	}
}
