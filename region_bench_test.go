package iwarp_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// BenchmarkRemoteMemory measures a call of QP.At beside one of QP.Read or Write with memory that is registered.
func BenchmarkRemoteMemory(b *testing.B) {
	ini, res := rig.Connect(b)
	const most = 4 << 20
	mr, there := ini.MR(most, iwarp.LocalWrite), res.MR(most, iwarp.RemoteWrite|iwarp.RemoteRead)
	at, ctx := ini.At(b.Context(), there.Region()), b.Context()
	for name, call := range map[string]func(n int) error{
		"Read":    func(n int) error { _, err := ini.Read(ctx, mr.Slice(0, n), there.Remote(0)); return err },
		"ReadAt":  func(n int) error { _, err := at.ReadAt(mr.Bytes()[:n], 0); return err },
		"Write":   func(n int) error { _, err := ini.Write(ctx, mr.Slice(0, n), there.Remote(0)); return err },
		"WriteAt": func(n int) error { _, err := at.WriteAt(mr.Bytes()[:n], 0); return err },
	} {
		for _, n := range []int{64, 4096, 64 << 10, 1 << 20, most} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					rig.Must(b, call(n))
				}
				rig.Must(b, at.Flush(ctx))
			})
		}
	}
}
