package decode_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// TestSMBDirect prints the depths of SMB Direct as they are, with their byte order.
func TestSMBDirect(t *testing.T) {
	p := opened()
	p.data(fw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1,
		PrivateData: []byte{32, 0, 0, 0, 1, 0, 0, 0}}))
	p.data(bw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, Rev: 1,
		PrivateData: []byte{0, 0, 0, 1, 0, 0, 0, 8}}))
	text := printed(t, p.file.Bytes())
	for _, want := range []string{
		"start-req pdlen 8 mpav1, private data like SMB Direct depths ird 32 ord 1, little-endian: Linux's client",
		"start-rep pdlen 8 mpav1, private data like SMB Direct depths ird 1 ord 8, big-endian\n",
		"private data ->  like SMB Direct depths ird 32 ord 1, little-endian",
		"private data <-  like SMB Direct depths ird 1 ord 8, big-endian\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
