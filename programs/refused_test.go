//go:build linux && interposer

package programs

import (
	"strings"
	"testing"
)

// refused is testdata/refused.c: what ibv_modify_qp refuses is in the log with the reason; and who connects by itself as an iWARP device reads once, and without
// a log, how to run that.
func (l Library) refused(t *testing.T) {
	const advice, roce = "for which there is iwarp run --as roce", string(RoCE)
	said := func(as, log string) string {
		t.Setenv(guiseVariable, as)
		t.Setenv("IWARP_LOG", log)
		return l.compiledWith(t, "refused", []string{as}, pair...).out.String()
	}
	if out := said(string(IWARP), ""); strings.Count(out, advice) != 1 || strings.Contains(out, "call refused") {
		t.Errorf("as iWARP:\n%s", out)
	}
	if out := said(roce, ""); out != "refused: ok\n" {
		t.Errorf("as RoCE:\n%s", out)
	}
	logged := said(string(IWARP), "connection") + said(roce, "connection")
	for _, cause := range []string{
		"iWARP has no Send with Immediate Data (IBV_QP_EX_WITH_SEND_WITH_IMM)", "no way leads from INIT to RTS but a connection of librdmacm's",
		"there is no transition from INIT to RTS", "the transition needs IBV_QP_AV IBV_QP_RQ_PSN", "the transition does not take IBV_QP_QKEY",
		"cur_qp_state is RTS, and the QP is in INIT", "dest_qp_num 0x4d is not that of a QP of iwarp run, or librdmacm connects this QP",
		"the transition does not take 0x40000000", "path_mtu is 9, and may be from 1 to 5", "there is no GID of sgid_index 63", "no way leads from INIT to SQD",
	} {
		if !strings.Contains(logged, `cause="`+cause+`"`) {
			t.Errorf("no record says %q", cause)
		}
	}
	if t.Failed() {
		t.Log(logged)
	}
}
