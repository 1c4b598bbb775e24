package framework

import (
	"errors"
	"fmt"
	"strings"
)

// Code is a plugin's answer in one word.
type Code int

const (
	// Success: the plugin has no objection. A nil *Status means Success, too.
	Success Code = iota
	// Error: the plugin could not decide. The pod is tried again after a back-off,
	// whether or not anything happens in the cluster.
	Error
	// Unschedulable: not now; evicting other pods could help.
	Unschedulable
	// UnschedulableAndUnresolvable: not now, and evicting pods would not help.
	UnschedulableAndUnresolvable
	// Skip: the plugin has nothing to say about this pod; its later point of
	// the same kind (Filter after PreFilter, Score after PreScore) is not
	// called in this attempt.
	Skip
	// Wait: a Permit plugin makes the pod wait before it is bound.
	Wait
	// Pending: a node was found, but something that the plugin has asked for must
	// happen first. The attempt fails, and is repeated without a back-off when one
	// of the plugin's events comes.
	Pending
)

var codeNames = [...]string{"Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Skip", "Wait", "Pending"}

func (c Code) String() string { return codeNames[c] }

// Status is a plugin's answer. It must not be changed once it has been
// returned: plugins return the same Status for many nodes.
type Status struct {
	code    Code
	reasons []string
	err     error
	plugin  string
}

// NewStatus returns a status with reasons meant for people.
func NewStatus(code Code, reasons ...string) *Status {
	return &Status{code: code, reasons: reasons}
}

// AsError returns an Error status that keeps its cause; nil, which is success, without one.
func AsError(err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{code: Error, reasons: []string{err.Error()}, err: err}
}

// By returns the status with the name of the plugin that gave it.
func (s *Status) By(plugin string) *Status {
	if s == nil || s.plugin == plugin {
		return s
	}
	named := *s
	named.plugin = plugin
	return &named
}

// running returns the status with the name of the plugin that gave it at a point. An
// error also says so to people, in upstream's words.
func (s *Status) running(point string, plugin Plugin) *Status {
	if s.Err() != nil && !s.IsRejected() {
		s = AsError(fmt.Errorf("running %s plugin %q: %w", point, plugin.Name(), s.Err()))
	}
	return s.By(plugin.Name())
}

// Code is the answer; Success for a nil status.
func (s *Status) Code() Code {
	if s == nil {
		return Success
	}
	return s.code
}

// Reasons are texts for people, one for each thing that was lacking.
func (s *Status) Reasons() []string {
	if s == nil {
		return nil
	}
	return s.reasons
}

// Plugin is the name of the plugin that gave the status, if known.
func (s *Status) Plugin() string {
	if s == nil {
		return ""
	}
	return s.plugin
}

// Message joins the reasons.
func (s *Status) Message() string { return strings.Join(s.Reasons(), ", ") }

// IsSuccess reports whether the plugin had no objection.
func (s *Status) IsSuccess() bool { return s.Code() == Success }

// IsSkip reports whether the plugin has nothing to say.
func (s *Status) IsSkip() bool { return s.Code() == Skip }

// IsRejected reports whether the plugin decided against it.
func (s *Status) IsRejected() bool {
	return s.Code() == Unschedulable || s.Code() == UnschedulableAndUnresolvable || s.Code() == Pending
}

// Err is nil for Success and Skip, and otherwise says what went wrong.
func (s *Status) Err() error {
	switch {
	case s.IsSuccess() || s.IsSkip():
		return nil
	case s.err != nil:
		return s.err
	}
	return errors.New(s.Message())
}
