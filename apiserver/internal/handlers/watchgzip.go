package handlers

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"sync"
)

// streamWriter is where a watch's events go.
type streamWriter interface {
	Write(p []byte) (int, error)
	Flush() error
}

// plainStream sends events as they are.
type plainStream struct{ http.ResponseWriter }

func (p plainStream) Flush() error {
	p.ResponseWriter.(http.Flusher).Flush()
	return nil
}

// storingWriters make gzip without compressing.
var storingWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.NoCompression)
	if err != nil { // only for a level that does not exist
		panic(err)
	}
	return w
}}

// gzipStream compresses a watch that stands for a list as the list would be.
// What is sent together is one gzip member, so that a watch that waits for events
// keeps no compressor. The events after the initial ones are the same bytes for
// all watchers; to compress them for each would cost more than to send them, so
// they are only framed.
type gzipStream struct {
	to          plainStream
	initialSent *bool
	pool        *sync.Pool
	member      *gzip.Writer // the present one; nil between two
}

func (g *gzipStream) Write(p []byte) (int, error) {
	if g.member == nil {
		g.pool = &gzipWriters
		if *g.initialSent {
			g.pool = &storingWriters
		}
		g.member = g.pool.Get().(*gzip.Writer)
		g.member.Reset(g.to)
	}
	n, err := g.member.Write(p)
	if err != nil {
		return n, fmt.Errorf("compress: %w", err)
	}
	return n, nil
}

// Flush ends the member. Its content is flushed before, because a reader that
// waits for the header of the next member may hold back what comes with the end.
func (g *gzipStream) Flush() error {
	if g.member == nil {
		return g.to.Flush()
	}
	err := g.member.Flush()
	if err == nil {
		err = g.member.Close()
	}
	g.member.Reset(nil)
	g.pool.Put(g.member)
	g.member = nil
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	return g.to.Flush()
}
