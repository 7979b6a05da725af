// Package endings has the tests of how connections end, through the public API: closes in order and at once, losses,
// timeouts, and what each call says afterwards.
package endings
