package document

import "testing"

// TestBetween: what stands between two lines of a document is replaced, and nothing else; where one is missing, or
// they are the wrong way round, there is no place for it.
func TestBetween(t *testing.T) {
	got, ok := Between("a\n<x>\nold\n</x>\nb\n", "<x>\n", "</x>\n", "new\n")
	if want := "a\n<x>\nnew\n</x>\nb\n"; !ok || got != want {
		t.Errorf("%q, %v, want %q", got, ok, want)
	}
	for _, doc := range []string{"", "<x>\nold\n", "old\n</x>\n", "</x>\nold\n<x>\n"} {
		if got, ok := Between(doc, "<x>\n", "</x>\n", "new\n"); ok {
			t.Errorf("%q has a place: %q", doc, got)
		}
	}
}
