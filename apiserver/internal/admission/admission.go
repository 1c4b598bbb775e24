// Package admission holds the chain of plugins that may change or refuse an
// object on its way into the registry: first every mutating plugin, then,
// after validation, every validating one. One folder below holds one plugin.
//
// Plugins see decoded, defaulted objects. They never write to storage.
package admission

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Operation is what is being done to the object.
type Operation string

const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes are what a plugin decides on.
type Attributes struct {
	Operation   Operation
	Resource    core.Resource
	Subresource string
	Namespace   string
	Name        string // may be empty on Create with generateName
	// Object is the new object: nil on Delete. Only mutating plugins change it.
	Object core.Object
	// OldObject is the stored one: nil on Create.
	OldObject core.Object
	// Options are the CreateOptions, UpdateOptions or DeleteOptions.
	Options runtime.Object
	DryRun  bool
	User    *request.User // nil in the server's own loops
}

// Plugin is one admission plugin. It implements Mutator, Validator or both.
type Plugin interface {
	// Name is upstream's name, as --enable-admission-plugins takes it.
	Name() string
	Handles(op Operation) bool
}

// Mutator changes or refuses the object. Errors that are not a status error
// are answered as 403 Forbidden with the plugin's words.
type Mutator interface {
	Plugin
	Admit(ctx context.Context, a *Attributes) error
}

// Validator refuses the object, and must not change it.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// Chain runs plugins in order. The zero Chain admits everything.
type Chain struct {
	mutators   []Mutator
	validators []Validator
}

// NewChain puts plugins into a chain in the given order.
func NewChain(plugins ...Plugin) *Chain {
	return (&Chain{}).With(plugins...)
}

// With returns the chain with more plugins behind its own.
func (c *Chain) With(plugins ...Plugin) *Chain {
	c = &Chain{mutators: slices.Clone(c.mutators), validators: slices.Clone(c.validators)}
	for _, p := range plugins {
		if m, ok := p.(Mutator); ok {
			c.mutators = append(c.mutators, m)
		}
		if v, ok := p.(Validator); ok {
			c.validators = append(c.validators, v)
		}
	}
	return c
}

// Admit runs the mutating plugins; the first refusal ends the chain.
func (c *Chain) Admit(ctx context.Context, a *Attributes) error {
	for _, m := range c.mutators {
		if !m.Handles(a.Operation) {
			continue
		}
		if err := m.Admit(ctx, a); err != nil {
			return refusal(a, err)
		}
	}
	return nil
}

// Validate runs the validating plugins; the first refusal ends the chain.
func (c *Chain) Validate(ctx context.Context, a *Attributes) error {
	for _, v := range c.validators {
		if !v.Handles(a.Operation) {
			continue
		}
		if err := v.Validate(ctx, a); err != nil {
			return refusal(a, err)
		}
	}
	return nil
}

// DryRun reports whether options ask for a dry run.
func DryRun(dryRun []string) bool { return len(dryRun) == 1 && dryRun[0] == metav1.DryRunAll }
