package logs

import (
	"bytes"
	"fmt"
	"io"
)

const (
	blockSize = 64 << 10
	// headSize is enough for a line's time, stream and first tag.
	headSize = 64
)

// findTail is where the last n lines of the container's begin in a file of the
// given size. A line that was written in parts is one line.
func findTail(file io.ReaderAt, size int64, n int64) (int64, error) {
	if n < 0 || size == 0 {
		return 0, nil
	}
	if n == 0 {
		return size, nil
	}
	t := &tail{file: file, block: make([]byte, 0, blockSize), offset: size}
	start := size // of the lines counted so far
	end := size   // of the raw line looked at, without its newline
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil {
		return 0, fmt.Errorf("reading the end of the log: %w", err)
	}
	if last[0] == '\n' {
		end--
	}
	for first := true; ; first = false {
		newline, err := t.newlineBefore(end)
		if err != nil {
			return 0, fmt.Errorf("looking for the last lines: %w", err)
		}
		head, err := t.head(newline + 1)
		if err != nil {
			return 0, fmt.Errorf("looking for the last lines: %w", err)
		}
		// Going backwards, each raw line that ends a line begins another one; so does
		// the very last one, whatever it is.
		if first || endsLine(head) {
			if n--; n < 0 {
				return start, nil
			}
		}
		start = newline + 1
		if newline < 0 {
			return 0, nil
		}
		end = newline
	}
}

// tail holds one block of the file, so that going backwards line by line does
// not read each line on its own.
type tail struct {
	file   io.ReaderAt
	block  []byte
	offset int64 // of the block
}

// newlineBefore is the offset of the last newline before end, or -1.
func (t *tail) newlineBefore(end int64) (int64, error) {
	for end > 0 {
		if end <= t.offset || end > t.offset+int64(len(t.block)) {
			if err := t.load(end); err != nil {
				return 0, err
			}
		}
		if i := bytes.LastIndexByte(t.block[:end-t.offset], '\n'); i >= 0 {
			return t.offset + int64(i), nil
		}
		end = t.offset
	}
	return -1, nil
}

// load reads the block that ends at end.
func (t *tail) load(end int64) error {
	start := max(0, end-blockSize)
	t.block = t.block[:end-start]
	t.offset = start
	_, err := t.file.ReadAt(t.block, start)
	return err
}

// head is the beginning of the line at offset.
func (t *tail) head(offset int64) ([]byte, error) {
	if from := offset - t.offset; from >= 0 && from+headSize <= int64(len(t.block)) {
		return t.block[from : from+headSize], nil
	}
	head := make([]byte, headSize)
	n, err := t.file.ReadAt(head, offset)
	if err == io.EOF {
		err = nil
	}
	return head[:n], err
}
