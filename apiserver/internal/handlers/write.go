package handlers

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"sync"

	"kctl/apiserver/internal/negotiation"
)

// minGzipSize is the length from which bodies are compressed; upstream's.
const minGzipSize = 128 << 10

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // only for a level that does not exist
		panic(err)
	}
	return w
}}

// write answers with the parts of a body, one after the other.
func (c *call) write(code int, contentType string, parts ...[]byte) {
	w := c.gin.Writer
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	if length >= minGzipSize {
		header.Add("Vary", "Accept-Encoding")
		if negotiation.AcceptsGzip(c.gin.Request) {
			c.writeGzip(code, parts)
			return
		}
	}
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(code)
	writeParts(w, parts)
}

// chunkSize is how much is passed to the connection at once: single objects of a
// list are small, and each write costs the layers below some work.
const chunkSize = 64 << 10

var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, chunkSize); return &b }}

// writeParts copies parts into chunks. It ignores errors: the client is gone,
// and the connection ends with the request.
func writeParts(w http.ResponseWriter, parts [][]byte) {
	if len(parts) == 1 {
		_, _ = w.Write(parts[0])
		return
	}
	held := chunkBuffers.Get().(*[]byte)
	defer chunkBuffers.Put(held)
	buffer := (*held)[:0]
	for _, part := range parts {
		if len(buffer)+len(part) > chunkSize {
			if _, err := w.Write(buffer); err != nil {
				return
			}
			buffer = buffer[:0]
		}
		if len(part) > chunkSize {
			if _, err := w.Write(part); err != nil {
				return
			}
			continue
		}
		buffer = append(buffer, part...)
	}
	_, _ = w.Write(buffer)
}

func (c *call) writeGzip(code int, parts [][]byte) {
	w := c.gin.Writer
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	z.Reset(w)
	for _, part := range parts {
		if _, err := z.Write(part); err != nil {
			return
		}
	}
	_ = z.Close() // as in writeParts
}
