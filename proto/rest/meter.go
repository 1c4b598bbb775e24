package rest

import "time"

// Meter hears of a client's requests, to make metrics of them. Host is that of
// the API server, with its port; a code of 0 is no answer at all. It is called by
// many goroutines and must not wait.
type Meter interface {
	// Answered hears how a request was answered, each of those that are tried again.
	Answered(method, host string, code int)
	// Called hears of a call when its answer begins, tried again or not.
	Called(method, host string, took time.Duration, sent int)
	// Received hears how long an answer was that was read whole.
	Received(method, host string, bytes int)
	// Retried hears that a request is sent again because of an answer.
	Retried(method, host string, code int)
}

// unmetered is the meter of a client that has none.
type unmetered struct{}

func (unmetered) Answered(string, string, int)              {}
func (unmetered) Called(string, string, time.Duration, int) {}
func (unmetered) Received(string, string, int)              {}
func (unmetered) Retried(string, string, int)               {}
