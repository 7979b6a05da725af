package usertcp

import (
	"os"

	"gvisor.dev/gvisor/pkg/log"
)

// quiet has gVisor say nothing on standard error, where it warns of segments that peers send, as many as they like. Its log
// is one for the whole program: who has set another target keeps that.
func quiet() {
	if e, ok := log.Log().Emitter.(log.GoogleEmitter); ok && e.Writer != nil && e.Writer.Next == os.Stderr {
		log.SetTarget(&log.MultiEmitter{})
	}
}
