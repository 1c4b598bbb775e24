package lookup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/backoff"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// The types of watch events besides those of objects.
const (
	eventError    = "ERROR"
	eventBookmark = "BOOKMARK"
)

// watchPause is the pause before a watch that ended is opened again.
const watchPause = time.Second

// maxWatchFailures is how often in a row reopening a watch may fail: about as
// long as a server takes to restart.
const maxWatchFailures = 30

// Watch is what is watched, from which version on, and what narrows it.
type Watch struct {
	Target
	Version string
	Options []rest.Option
}

// Changes calls show with every change after a version, until the context ends.
// Watches that end, because the server ends them or goes away for a while,
// resume where they ended; if the server no longer has that revision, they
// start over with a list. If the target is a single object that was deleted
// meanwhile, that is reported too.
func Changes(ctx context.Context, c *frame.CLI, w Watch, show func(rest.Event) error) error {
	client, err := c.Server()
	if err != nil {
		return err
	}
	version, opened := w.Version, false
	for failures := 0; ; failures++ {
		from := append([]rest.Option{rest.Query("resourceVersion", version), rest.Query("allowWatchBookmarks", "true")}, w.Options...)
		stream, err := w.In(client).Watch(ctx, from...)
		interrupted := opened // a server that was there may come back
		if err == nil {
			opened, failures = true, 0
			version, interrupted, err = readWatch(stream, version, show)
			_ = stream.Close()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			version = ""
			if err := tellIfGone(ctx, c, w, show); err != nil {
				return err
			}
		case !interrupted || failures > maxWatchFailures:
			return err
		}
		if err := backoff.Sleep(ctx, c.Clock, watchPause); err != nil {
			return err
		}
	}
}

// Patiently runs a watch for as long as --request-timeout says: a watch is one
// request, and its timeout is a regular end.
func Patiently(ctx context.Context, c *frame.CLI, do func(context.Context) error) error {
	if c.Flags.Timeout <= 0 {
		return do(ctx)
	}
	within, cancel := context.WithTimeout(ctx, c.Flags.Timeout)
	defer cancel()
	err := do(within)
	if within.Err() != nil && ctx.Err() == nil {
		c.Detail("the watch ended with --request-timeout: %v", within.Err())
		return nil
	}
	return err
}

// tellIfGone shows the deletion that a restarted watch has missed.
func tellIfGone(ctx context.Context, c *frame.CLI, w Watch, show func(rest.Event) error) error {
	if w.ObjectName == "" {
		return nil
	}
	client, err := c.Server()
	if err != nil {
		return err
	}
	found, err := List(ctx, w.In(client), 0, w.Options...)
	if err != nil || len(found.Items) > 0 {
		return err
	}
	return show(rest.Event{Type: string(watch.Deleted), Object: json.RawMessage(`{}`)})
}

// readWatch reads a watch until it ends, and returns the last version that it saw.
// interrupted means that the stream ended, not that show had enough or the
// server reported an error.
func readWatch(stream *rest.Stream, version string, show func(rest.Event) error) (last string, interrupted bool, err error) {
	for {
		event, err := stream.Next()
		if err != nil {
			return version, !errors.Is(err, rest.ErrNoEvent), err
		}
		if event.Type == eventError {
			return version, false, watchError(event.Object)
		}
		version = cmp.Or(versionOf(event.Object), version)
		if event.Type == eventBookmark {
			continue
		}
		if err := show(event); err != nil {
			return version, false, err
		}
	}
}

func watchError(object json.RawMessage) error {
	status := metav1.Status{}
	if err := json.Unmarshal(object, &status); err != nil {
		return fmt.Errorf("decode the watch's error: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// versionOf is the resourceVersion of an event's object, or of the object in
// its table.
func versionOf(object json.RawMessage) string {
	var content struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Rows []struct {
			Object struct {
				Metadata struct {
					ResourceVersion string `json:"resourceVersion"`
				} `json:"metadata"`
			} `json:"object"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(object, &content); err != nil {
		return ""
	}
	if len(content.Rows) > 0 && content.Rows[0].Object.Metadata.ResourceVersion != "" {
		return content.Rows[0].Object.Metadata.ResourceVersion
	}
	return content.Metadata.ResourceVersion
}
