// Package startup has the tests of how connections begin, through the public API: dialects, what is negotiated,
// fallback, rejects, timeouts and presets.
package startup
