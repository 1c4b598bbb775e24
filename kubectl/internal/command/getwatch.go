package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// The types of watch events besides those of objects.
const (
	eventError    = "ERROR"
	eventBookmark = "BOOKMARK"
)

// follow prints what a target is, and then every change to it.
func (g *getting) follow(ctx context.Context, targets []target) error {
	if len(targets) != 1 {
		return errors.New("watch is only supported on individual resources and resource collections - more than 1 resource was found")
	}
	t := targets[0]
	if t.name != "" {
		// The object must exist now; from then on it is watched as the part of
		// the collection that has its name.
		if _, err := g.fetch(ctx, t, &g.selection); err != nil {
			return err
		}
		g.fields, t.name = "metadata.name="+t.name, ""
	}
	options := g.options()
	if patience := g.flags.Timeout; patience > 0 {
		// A watch is one request: it ends, and well, when that has to.
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := g.changesOf(within, t, options)
		if within.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
	}
	return g.changesOf(ctx, t, options)
}

func (g *getting) changesOf(ctx context.Context, t target, options []rest.Option) error {
	if g.TableOutput() {
		return g.followTable(ctx, t, append(options, rest.Accept(asTable)))
	}
	return g.followObjects(ctx, t, options)
}

func (g *getting) followTable(ctx context.Context, t target, options []rest.Option) error {
	out := g.newTable([]target{t}, &t)
	content, err := g.table(ctx, t)
	if err != nil {
		return err
	}
	version := content.ResourceVersion
	if !g.watchOnly {
		if err := out.Add(content, string(watch.Added)); err != nil {
			return err
		}
		if err := out.Flush(g.Out); err != nil {
			return err
		}
	}
	return g.changes(ctx, t, version, options, func(event rest.Event) error {
		table, err := decodeTable(event.Object)
		if err != nil {
			return err
		}
		if err := out.Add(table, event.Type); err != nil {
			return err
		}
		return out.Flush(g.Out)
	})
}

func (g *getting) followObjects(ctx context.Context, t target, options []rest.Option) error {
	p, err := printer.New(g.Options)
	if err != nil {
		return err
	}
	client, err := g.server()
	if err != nil {
		return err
	}
	found, err := list(ctx, t.in(client), g.chunkSize, options...)
	if err != nil {
		return err
	}
	for i := range found.Items {
		if g.watchOnly {
			break
		}
		if err := g.printChange(p, string(watch.Added), &found.Items[i]); err != nil {
			return err
		}
	}
	return g.changes(ctx, t, found.GetResourceVersion(), options, func(event rest.Event) error {
		object, err := decode(event.Object)
		if err != nil {
			return err
		}
		return g.printChange(p, event.Type, object)
	})
}

func (g *getting) printChange(p printer.Printer, event string, object *unstructured.Unstructured) error {
	if g.watchEvents {
		return p.Print(g.Out, &printer.Event{Type: event, Object: object})
	}
	return p.Print(g.Out, object)
}

// watchPause is waited before a watch that ended is opened again.
const watchPause = time.Second

// maxWatchFailures is how often in a row a watch may fail to be opened again:
// about the time that a server takes to start anew.
const maxWatchFailures = 30

// changes calls show with every change after version, until the context ends.
// Watches that end, be it that the server ends them or that it goes away for a
// while, are taken up where they ended; where the server no longer knows that
// place, they start over with what there is; that the one object of a target
// with a name was deleted meanwhile is then told too.
func (c *cli) changes(ctx context.Context, t target, version string, options []rest.Option, show func(rest.Event) error) error {
	client, err := c.server()
	if err != nil {
		return err
	}
	opened := false
	for failures := 0; ; failures++ {
		from := append([]rest.Option{rest.Query("resourceVersion", version), rest.Query("allowWatchBookmarks", "true")}, options...)
		stream, err := t.in(client).Watch(ctx, from...)
		interrupted := opened // a server that was there may come back
		if err == nil {
			opened, failures = true, 0
			version, interrupted, err = drain(stream, version, show)
			_ = stream.Close()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			version = ""
			if err := c.tellIfGone(ctx, t, options, show); err != nil {
				return err
			}
		case !interrupted || failures > maxWatchFailures:
			return err
		}
		if err := rest.Sleep(ctx, c.clock, watchPause); err != nil {
			return err
		}
	}
}

// tellIfGone shows the deletion that a watch which starts over has missed.
func (c *cli) tellIfGone(ctx context.Context, t target, options []rest.Option, show func(rest.Event) error) error {
	if t.name == "" {
		return nil
	}
	client, err := c.server()
	if err != nil {
		return err
	}
	found, err := list(ctx, t.in(client), 0, options...)
	if err != nil || len(found.Items) > 0 {
		return err
	}
	return show(rest.Event{Type: string(watch.Deleted), Object: json.RawMessage(`{}`)})
}

// drain reads a watch until it ends, and returns the last version it saw.
// interrupted tells that the stream ended, and not that show had enough or the
// server said what is wrong.
func drain(stream *rest.Stream, version string, show func(rest.Event) error) (last string, interrupted bool, err error) {
	for {
		event, err := stream.Next()
		if err != nil {
			var garbage *json.SyntaxError
			return version, !errors.As(err, &garbage), err
		}
		if event.Type == eventError {
			return version, false, watchError(event.Object)
		}
		if v := versionOf(event.Object); v != "" {
			version = v
		}
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
