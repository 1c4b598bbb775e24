package rest

import "time"

// Meter makes metrics of a client's requests. Host is the API server's, with
// its port; a code of 0 means no answer. Its methods are called from many
// goroutines and must not block.
type Meter interface {
	// Answered is called for the answer to every attempt of a request.
	Answered(method, host string, code int)
	// Called is called once for each call, however many attempts it took, when its answer
	// begins.
	Called(method, host string, took time.Duration, sent int)
	// Received is called with the length of an answer that was read completely.
	Received(method, host string, bytes int)
	// Retried is called when a request is sent again because of an answer.
	Retried(method, host string, code int)
}

// noopMeter is the meter of a client that has none.
type noopMeter struct{}

func (noopMeter) Answered(string, string, int)              {}
func (noopMeter) Called(string, string, time.Duration, int) {}
func (noopMeter) Received(string, string, int)              {}
func (noopMeter) Retried(string, string, int)               {}
