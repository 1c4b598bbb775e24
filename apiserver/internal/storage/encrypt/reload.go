package encrypt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/configfile"
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
	ticker := t.clock.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
		changed, err := t.Reload(ctx)
		status := "success"
		switch {
		case err != nil:
			status = "failure"
			t.logger.Error("changed encryption configuration rejected; the previous one stays in effect", zap.Error(err))
		case !changed:
			continue
		default:
			t.logger.Info("encryption configuration reloaded", zap.String("file", t.file))
		}
		t.metrics.reloads.WithLabelValues(status).Inc()
		t.metrics.last.WithLabelValues(status).Set(float64(t.clock.Now().Unix()))
	}
}

// Reload adopts the file's present content if it is a different, valid
// configuration whose KMS answer.
func (t *Transformer) Reload(ctx context.Context) (changed bool, err error) {
	config, text, err := load(t.file)
	if err != nil {
		return false, err
	}
	old := t.current.Load()
	if bytes.Equal(old.text, text) {
		return false, nil
	}
	next, err := t.generation(ctx, config, text)
	if err != nil {
		return false, err
	}
	for _, k := range next.kms {
		if err := k.refresh(ctx); err != nil {
			next.end()
			return false, fmt.Errorf("kms %s: %w", k.name, err)
		}
	}
	t.current.Store(next)
	configfile.SetInfo(t.metrics.info, text)
	timer := t.clock.NewTimer(old.closeDelay())
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		old.end()
	}()
	return true, nil
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
