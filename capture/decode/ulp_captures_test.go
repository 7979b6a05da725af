package decode_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// ulpLines takes note of what the ULP says.
type ulpLines struct {
	decode.Ignore
	lines []string
}

func (u *ulpLines) ULP(_ *decode.Connection, e *decode.ULP) {
	u.lines = append(u.lines, fmt.Sprintf("%v %s: %s\n", e.Dir, e.Protocol, e.Text))
}

// TestULPCaptures: what Linux's NFS, iSER and SMB Direct have said to each other over siw. The NFS server had just started,
// so that it is in its grace period; a file is not there, and a directory is not empty.
func TestULPCaptures(t *testing.T) {
	for _, name := range []string{"siw-nfs4", "siw-nfs3", "siw-iser", "siw-smb"} {
		file, err := os.ReadFile(filepath.Join(testrig.Stored, name+".pcap"))
		testrig.Must(t, err)
		var said ulpLines
		_, err = decode.Run(bytes.NewReader(file), decode.Config{}, &said)
		testrig.Must(t, err)
		testrig.Golden(t, filepath.Join("testdata", "ulp", name+".txt"), []byte(strings.Join(said.lines, "")), *update)
	}
}
