package logs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"
)

// BenchmarkRead reads a whole log of 16 MiB, and beside it copies the file,
// which is the floor.
func BenchmarkRead(b *testing.B) {
	var content bytes.Buffer
	for i := 0; content.Len() < 16<<20; i++ {
		fmt.Fprintf(&content, "2026-11-21T09:00:00.%09dZ stdout F %s\n", i, strings.Repeat("x", 100))
	}
	path := filepath.Join(b.TempDir(), "0.log")
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(content.Len()))
		for b.Loop() {
			log, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if err := log.Read(b.Context(), plainWriter{}, Options{Clock: clock.RealClock{}}); err != nil {
				b.Fatal(err)
			}
			_ = log.Close()
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(content.Len()))
		for b.Loop() {
			file, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.CopyBuffer(plainWriter{}, struct{ io.Reader }{file}, make([]byte, 32<<10)); err != nil {
				b.Fatal(err)
			}
			_ = file.Close()
		}
	})
}

// plainWriter has no ReadFrom, with which a copy could bypass its buffer.
type plainWriter struct{}

func (plainWriter) Write(p []byte) (int, error) { return len(p), nil }
