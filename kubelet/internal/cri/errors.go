package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is a call that failed.
type Error struct {
	Verb string // the CRI method
	ID   string // of the sandbox, container or image; may be empty
	Err  error  // as gRPC gave it, its text bounded
}

func (e *Error) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("runtime call %s: %v", e.Verb, Message(e.Err))
	}
	return fmt.Sprintf("runtime call %s %s: %v", e.Verb, shortID(e.ID), Message(e.Err))
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is recognise deadlines and cancellations that gRPC reports.
func (e *Error) Is(target error) bool {
	switch code(e.Err) {
	case codes.DeadlineExceeded:
		return target == context.DeadlineExceeded
	case codes.Canceled:
		return target == context.Canceled
	}
	return false
}

// maxText bounds the text of an error. The runtime repeats what others told it: a
// registry's refusal has any length, and so has a command that can't be started.
// What users read of it goes into the API, where it is stored again whenever it changes.
const maxText = 4096

// Shorten leaves the beginning and the end of a text that is too long for the API: they
// say where it happened and why.
func Shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	const half, cut = maxText / 2, " … "
	return strings.ToValidUTF8(text[:half-len(cut)]+cut+text[len(text)-half:], "\uFFFD")
}

// bounded shortens an error's text.
func bounded(err error) error {
	s, ok := status.FromError(err)
	if !ok || len(s.Message()) <= maxText {
		return err
	}
	return status.Error(s.Code(), Shorten(s.Message()))
}

// Message is the runtime's own message, without what was wrapped around it: the
// text that users read in events and statuses.
func Message(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		if text := s.GRPCStatus().Message(); text != "" {
			return text
		}
	}
	return err.Error()
}

// MessageWithCode is Message after the runtime's error code, if there is one: "rpc error:
// code = NotFound desc = …". In some places users see this form.
func MessageWithCode(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) && s.GRPCStatus().Code() != codes.Unknown {
		return s.GRPCStatus().Err().Error()
	}
	return Message(err)
}

// GRPCMessage is what the runtime said, as users of gRPC know it: "rpc error: code = Unknown desc
// = …", whatever the code is.
func GRPCMessage(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) && s.GRPCStatus().Code() != codes.OK {
		return s.GRPCStatus().Err().Error()
	}
	return err.Error()
}

// IsNotFound tells whether the runtime does not know the object.
func IsNotFound(err error) bool { return code(err) == codes.NotFound }

// IsUnimplemented tells whether the runtime does not know the call.
func IsUnimplemented(err error) bool { return code(err) == codes.Unimplemented }

// IsUnavailable tells whether the runtime could not be reached.
func IsUnavailable(err error) bool { return code(err) == codes.Unavailable }

func code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}

// shortID keeps errors readable: runtimes' ids are 64 hexadecimal digits, of
// which their tools show 13.
func shortID(id string) string {
	if len(id) == 64 {
		return id[:13]
	}
	return id
}
