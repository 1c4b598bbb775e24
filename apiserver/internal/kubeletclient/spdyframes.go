package kubeletclient

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// spdyFrames reads what a kubelet sends over SPDY (SPDY/3.1, 2.2), so that it costs little memory
// whatever that is: the library holds up to 250 frames of a connection whose client does not
// read, of 16 MiB each, or of headers that grow to 1,000 times of that, and every stream until the
// connection ends. Frames whose length is not their kind's are refused: the library would read
// on in the middle of them, and see frames that have not passed here.
type spdyFrames struct {
	frames
	header  [spdyHeader]byte // of a data frame that is being split
	left    int
	replies int
}

const (
	spdyHeader   = 8
	controlBit   = 0x80
	spdyFin      = 0x01
	lengthMask   = 1<<24 - 1
	maxDataFrame = 32 << 10
	typeAt       = 2
	flagsAt      = 4

	// maxReplies is one for each stream that openStreams opens, and maxReply how long one may
	// be: those of kubelets and runtimes have no headers.
	maxReplies = 5
	maxReply   = 1 << 10
)

// Kinds of control frames.
const (
	synStream    = 1
	synReply     = 2
	rstStream    = 3
	settings     = 4
	ping         = 6
	goAway       = 7
	headers      = 8
	windowUpdate = 9
)

func newSPDYFrames(from io.Reader) *spdyFrames {
	return &spdyFrames{frames: frames{from: bufio.NewReader(from)}}
}

func (s *spdyFrames) Read(p []byte) (n int, err error) { return s.read(p, s.next) }

func (s *spdyFrames) next() error {
	if s.left == 0 {
		if _, err := io.ReadFull(s.from, s.header[:]); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint32(s.header[flagsAt:]) & lengthMask)
		if s.header[0]&controlBit != 0 {
			return s.control(length)
		}
		s.left = length
	}
	size := min(s.left, maxDataFrame)
	s.left -= size
	flags := s.header[flagsAt]
	if s.left > 0 {
		flags &^= spdyFin // for the last part
	}
	part := binary.BigEndian.AppendUint32(s.header[:flagsAt:flagsAt], uint32(flags)<<24|uint32(size))
	s.pending, s.pass = part, size
	return nil
}

// control passes a control frame of that length on.
func (s *spdyFrames) control(length int) error {
	valid := false
	switch binary.BigEndian.Uint16(s.header[typeAt:]) {
	case synStream:
		return errors.New("the kubelet opens a stream, which only the client may")
	case headers:
		return errors.New("unexpected headers from the kubelet")
	case synReply:
		s.replies++
		valid = s.replies <= maxReplies && length <= maxReply
	case ping:
		valid = length == 4
	case rstStream, goAway, windowUpdate:
		valid = length == 8
	case settings: // which the library ignores
		_, err := s.from.Discard(length)
		return err
	}
	if !valid {
		return errors.New("a SPDY frame of the kubelet is of an unknown kind or a wrong length")
	}
	s.pending, s.pass = s.header[:], length
	return nil
}
