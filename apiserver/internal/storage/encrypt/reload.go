package encrypt

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// reloadInterval is how often the file is looked at; upstream's.
	reloadInterval = time.Minute
	// minCloseDelay is how long the KMS connections of a replaced configuration stay at
	// least.
	minCloseDelay = 10 * time.Second
)

// Run watches the configuration's file, if it is to be reloaded, until ctx ends.
func (t *Transformer) Run(ctx context.Context, reload bool) error {
	defer func() { t.current.Load().end() }()
	if !reload {
		<-ctx.Done()
		return ctx.Err()
	}
	t.file.Apply = func(content []byte) error { return t.adopt(ctx, content) }
	return t.file.Run(ctx)
}

// adopt puts a valid configuration into force if its KMS answer.
func (t *Transformer) adopt(ctx context.Context, content []byte) error {
	next, err := t.generation(ctx, t.file.Path, content)
	if err != nil {
		return err
	}
	for _, k := range next.kms {
		if err := k.refresh(ctx); err != nil {
			next.end()
			return fmt.Errorf("kms %s: %w", k.name, err)
		}
	}
	old := t.current.Swap(next)
	timer := t.clock.NewTimer(old.closeDelay())
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		old.end()
	}()
	return nil
}

// closeDelay is how long calls may still be waiting for the KMS: one after the other, in
// the worst case.
func (g *generation) closeDelay() time.Duration {
	var sum time.Duration
	for _, k := range g.kms {
		sum += k.timeout
	}
	return max(minCloseDelay, 2*sum)
}

// Check returns an error for the KMS that don't answer.
func (t *Transformer) Check(ctx context.Context) error {
	var errs []error
	for _, k := range t.current.Load().kms {
		if err := k.check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("kms %s: %w", k.name, err))
		}
	}
	return errors.Join(errs...)
}
