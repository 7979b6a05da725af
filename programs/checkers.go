package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A list is a variable of the environment with several values, of which the last one holds where two contradict each
// other.
type list struct{ variable, value, separators string }

// checkers have tools that check a program bear with the library: the sanitizer of addresses need not be loaded before
// it, that of threads passes over what is not compiled for it, and valgrind over what Go's runtime does.
func (l Library) checkers() []list {
	out := []list{
		{"ASAN_OPTIONS", "verify_asan_link_order=0", ":"},
		{"TSAN_OPTIONS", "ignore_noninstrumented_modules=1", ":"},
		// Valgrind offers the instruction also where the processor lacks it, and then ends the program that takes it. Go's
		// runtime does when a lock of its own is contended.
		{"GODEBUG", "cpu.rdtscp=off", ","},
	}
	if _, err := os.Stat(l.suppressions()); err == nil {
		out = append(out, list{"VALGRIND_OPTS", "--suppressions=" + l.suppressions(), " "})
	}
	return out
}

// in returns an environment with the value before others of the variable, unless it is there.
func (l list) in(environ []string) []string {
	prefix := l.variable + "="
	i := slices.IndexFunc(environ, func(s string) bool { return strings.HasPrefix(s, prefix) })
	if i < 0 {
		return append(environ, prefix+l.value)
	}
	others := strings.TrimPrefix(environ[i], prefix)
	if !slices.Contains(strings.FieldsFunc(others,
		func(r rune) bool { return strings.ContainsRune(l.separators, r) }), l.value) {
		environ[i] = strings.TrimSuffix(prefix+l.value+l.separators[:1]+others, l.separators[:1])
	}
	return environ
}

// suppressions returns the file that tells valgrind what to pass over.
func (l Library) suppressions() string { return filepath.Join(l.Dir, "valgrind.supp") }

// writeSuppressions writes that file: valgrind takes goroutines' stacks, which move, for memory that is gone, even
// where that is the heap by now and is written to a connection, and their threads and the context that librdmacm's ids
// share for lost, as these stay until the process ends.
func (l Library) writeSuppressions() error {
	var b strings.Builder
	for _, kind := range []string{"Cond", "Value1", "Value2", "Value4", "Value8", "Addr1", "Addr2", "Addr4", "Addr8",
		"Addr16", "Addr32", "Jump"} {
		fmt.Fprintf(&b, "{\n Go's runtime\n Memcheck:%s\n obj:*/%s\n}\n", kind, engineName)
	}
	for _, call := range []string{"msync", "madvise"} {
		fmt.Fprintf(&b, "{\n whether memory may be registered\n Memcheck:Param\n %s(start)\n obj:*/%s\n}\n",
			call, engineName)
	}
	written := []string{"write(buf)", "pwrite64(buf)", "writev(vector[...])", "socketcall.sendto(msg)"}
	for i := range 32 { // records, of which so many may go at once
		written = append(written, fmt.Sprintf("sendmsg(mmsg[%d].msg_hdr.msg_iov[0])", i))
	}
	for _, data := range written {
		fmt.Fprintf(&b, "{\n bytes that lie in Go's memory\n Memcheck:Param\n %s\n obj:*/%s\n}\n", data, engineName)
	}
	for _, frame := range []string{"obj:*/" + engineName, "fun:iw_cm_context"} {
		fmt.Fprintf(&b, "{\n what stays\n Memcheck:Leak\n fun:calloc\n ...\n %s\n}\n", frame)
	}
	return os.WriteFile(l.suppressions(), []byte(b.String()), 0o666)
}
