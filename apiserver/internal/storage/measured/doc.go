// Package measured counts and times what is asked of a store, in upstream's
// metrics, so that dashboards carry over, and in spans where requests are traced.
//
// The server puts it around the store that it makes; whoever asks the store does
// not know of it, and it changes no answer.
package measured
