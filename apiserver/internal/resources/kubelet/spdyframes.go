package kubelet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// spdyFrames reads what a kubelet sends over SPDY (SPDY/3.1, 2.2), so that it costs little memory
// whatever that is: the library holds up to 250 frames of 16 MiB of a connection whose client does
// not read, and every stream until the connection ends.
type spdyFrames struct {
	frames
	header [spdyHeader]byte // of a data frame that is being split
	left   int
}

const (
	spdyHeader   = 8
	controlBit   = 0x80
	synStream    = 1
	spdyFin      = 0x01
	lengthMask   = 1<<24 - 1
	maxDataFrame = 32 << 10
	typeAt       = 2
	flagsAt      = 4
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
			if binary.BigEndian.Uint16(s.header[typeAt:]) == synStream {
				return errors.New("the kubelet opens a stream, which only the client may")
			}
			s.pending, s.pass = s.header[:], length
			return nil
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
