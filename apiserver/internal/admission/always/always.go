// Package always holds the two plugins with a constant answer: AlwaysAdmit and
// AlwaysDeny. Both are off by default, and useful for tests only.
package always

import (
	"context"
	"errors"

	"kctl/apiserver/internal/admission"
)

// Upstream's names.
const (
	AdmitName = "AlwaysAdmit"
	DenyName  = "AlwaysDeny"
)

// Admit admits everything.
type Admit struct{}

// Handles everything.
func (Admit) Handles(admission.Operation) bool { return true }

// Admit admits.
func (Admit) Admit(context.Context, *admission.Attributes) error { return nil }

// Deny refuses everything.
type Deny struct{}

// Handles everything.
func (Deny) Handles(admission.Operation) bool { return true }

var errDenied = errors.New("admission control is denying all modifications")

// Admit refuses.
func (Deny) Admit(context.Context, *admission.Attributes) error { return errDenied }

// Validate refuses.
func (Deny) Validate(context.Context, *admission.Attributes) error { return errDenied }
