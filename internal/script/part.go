package script

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Part says how much b is of a frame whose rest has not come, and shows it: of a Reply Frame or a Start Key, by the
// key. Bytes with which frames of other keys begin as well are a part of it all the same. It is empty where b is no
// part of such a frame, or has a whole one.
func Part(b []byte, key string) string {
	n := min(len(b), len(key))
	if n == 0 || string(b[:n]) != key[:n] {
		return ""
	}
	whole := wholeOf(b, key)
	if len(b) >= whole {
		return ""
	}
	return fmt.Sprintf("%d of %s%s of a %s: %+q", len(b),
		wording.If(openEnded(b, key), "at least ", ""), wording.Bytes(whole),
		wording.If(key == mpa.KeyStart, "Start Key", "Reply Frame"), b[:min(len(b), shown)])
}

// shown is how many bytes of a part are shown.
const shown = 32

// wholeOf returns how long the frame is, as far as what has come of it tells.
func wholeOf(b []byte, key string) int {
	switch {
	case key == mpa.KeyStart:
		return mpa.StartKeyLen
	case openEnded(b, key):
		return mpa.StartupHeaderLen
	}
	return mpa.StartupHeaderLen + int(mpa.StartupFrame(b).PDLength())
}

// openEnded reports whether PD_Length, which says how long the frame is, has not come yet.
func openEnded(b []byte, key string) bool {
	return key != mpa.KeyStart && len(b) < mpa.StartupHeaderLen
}
