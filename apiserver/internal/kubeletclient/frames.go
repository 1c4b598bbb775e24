package kubeletclient

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
)

// maxFrame is how much of a client's WebSocket frame is read into memory at once. A multiple of
// four after the channel's byte, so that each part of a base64 text can be decoded by itself.
const maxFrame = 64<<10 + 1

// framesWriter is for handlers that read a WebSocket with channels, frame by frame: they see large
// frames as several small ones. A frame may be 32 MiB long, and there may be many connections.
type framesWriter struct{ http.ResponseWriter }

// Unwrap is what http.ResponseController looks for.
func (w framesWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns a connection from which only its buffer may be read.
func (w framesWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return c, bufio.NewReadWriter(bufio.NewReader(&frameSplitter{frames: frames{from: buffer.Reader}}), buffer.Writer), nil
}

// frames reads frames, some of them changed.
type frames struct {
	from    *bufio.Reader
	pending []byte // to be read before what follows
	pass    int    // bytes that follow as they are
}

// read calls next to begin a frame, or a part of one.
func (f *frames) read(p []byte, next func() error) (n int, err error) {
	for len(f.pending) == 0 && f.pass == 0 {
		if err := next(); err != nil {
			return 0, err
		}
	}
	if len(f.pending) > 0 {
		n = copy(p, f.pending)
		f.pending = f.pending[n:]
		return n, nil
	}
	n, err = f.from.Read(p[:min(len(p), f.pass)])
	f.pass -= n
	return n, err
}

// frameSplitter reads a client's WebSocket frames (RFC 6455, 5.2) and splits large ones. Each part
// begins with the channel's byte, as the whole did.
type frameSplitter struct {
	frames

	// Of a frame that is being split:
	first   byte // of its header: flags and opcode
	key     [4]byte
	channel byte
	at      int64 // how much of its payload has passed
	left    int64
}

func (s *frameSplitter) Read(p []byte) (n int, err error) {
	return s.read(p, func() error {
		if s.left > 0 {
			s.nextPart()
			return nil
		}
		return s.nextFrame()
	})
}

const (
	maskBit, lengthBits = 0x80, 0x7f
	length16, length64  = 126, 127
	controlFrames       = 0x8 // and opcodes above it
	opcodeBits          = 0xf
)

// nextFrame reads a frame's header.
func (s *frameSplitter) nextFrame() error {
	header := make([]byte, 2, 14)
	read := func(more int) ([]byte, error) {
		at := len(header)
		header = header[:at+more]
		_, err := io.ReadFull(s.from, header[at:])
		return header[at:], err
	}
	if _, err := io.ReadFull(s.from, header); err != nil {
		return err
	}
	length := uint64(header[1] & lengthBits)
	switch length {
	case length16:
		text, err := read(2)
		if err != nil {
			return err
		}
		length = uint64(binary.BigEndian.Uint16(text))
	case length64:
		text, err := read(8)
		if err != nil {
			return err
		}
		length = binary.BigEndian.Uint64(text)
	}
	masked := header[1]&maskBit != 0
	if masked {
		key, err := read(4)
		if err != nil {
			return err
		}
		s.key = [4]byte(key)
	}
	if length <= maxFrame {
		s.pending, s.pass = header, int(length)
		return nil
	}
	if !masked || header[0]&opcodeBits >= controlFrames || length>>63 != 0 {
		return errors.New("a WebSocket frame is not a client's, or too long")
	}
	channel, err := s.from.ReadByte()
	if err != nil {
		return err
	}
	s.first, s.channel = header[0], channel^s.key[0]
	s.at, s.left = 1, int64(length)-1
	return nil
}

// nextPart begins another frame with a part of the one that is being split. Its key is turned so
// that the part's bytes remain as they were masked.
func (s *frameSplitter) nextPart() {
	size := int(min(s.left, maxFrame-1))
	header := binary.BigEndian.AppendUint64([]byte{s.first, maskBit | length64}, uint64(size)+1)
	var key [4]byte
	for i := range key {
		key[(1+i)%4] = s.key[(s.at+int64(i))%4]
	}
	s.pending = append(append(header, key[:]...), s.channel^key[0])
	s.pass, s.at, s.left = size, s.at+int64(size), s.left-int64(size)
}
