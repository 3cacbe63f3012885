//! The model's text form of documents: one document a line, in JSON's spelling, with a tag
//! before a scalar that has one of its own.
//!
//! Small and written back exactly, since no test of the model is about YAML. Keys stand in
//! their order; `!bwref "name"` is a reference. Never in this module: a merge, or a meaning.

use bronzeward_core::document::{
    BOOLEAN, Comments, Content, INTEGER, MAPPING, NULL, Node, SEQUENCE, STRING, Stream, Style,
};
use bronzeward_engine::ports::renderer::{LIMITS, RefusedClass};

/// What a text or a tree is refused for, and in which line.
pub struct Fault {
    pub class: RefusedClass,
    pub line: usize,
}

pub fn encode(stream: &Stream) -> Result<String, RefusedClass> {
    let mut text = String::new();
    for root in &stream.documents {
        write(root, false, &mut text)?;
        text.push('\n');
    }
    Ok(text)
}

/// One document; `sorted` as JSON's form has its keys.
pub fn encode_one(root: &Node, sorted: bool) -> Result<String, RefusedClass> {
    let mut text = String::new();
    write(root, sorted, &mut text)?;
    text.push('\n');
    Ok(text)
}

fn write(node: &Node, sorted: bool, out: &mut String) -> Result<(), RefusedClass> {
    // Nothing of ours makes one, and this form has no spelling for it.
    if node.anchor.is_some() || node.comments != Comments::default() {
        return Err(RefusedClass::Unwritable);
    }
    match &node.content {
        Content::Alias(_) => Err(RefusedClass::Unwritable),
        Content::Scalar(text) => scalar(node, text, out),
        Content::Sequence(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, sorted, out)?;
            }
            out.push(']');
            Ok(())
        }
        Content::Mapping(entries) => {
            let mut entries: Vec<&(Node, Node)> = entries.iter().collect();
            if sorted {
                entries.sort_by(|(one, _), (other, _)| one.text().cmp(&other.text()));
            }
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let text = key.text().filter(|_| key.tag == STRING);
                quoted(text.ok_or(RefusedClass::KeyNotScalar)?, out);
                out.push(':');
                write(value, sorted, out)?;
            }
            out.push('}');
            Ok(())
        }
    }
}

fn scalar(node: &Node, text: &str, out: &mut String) -> Result<(), RefusedClass> {
    let bare = match node.tag.as_str() {
        STRING => {
            quoted(text, out);
            return Ok(());
        }
        INTEGER => is_integer(text),
        BOOLEAN => matches!(text, "true" | "false"),
        NULL => text == "null",
        tag => {
            if !is_tag(tag) {
                return Err(RefusedClass::Unwritable);
            }
            out.push_str(tag);
            out.push(' ');
            quoted(text, out);
            return Ok(());
        }
    };
    if !bare {
        return Err(RefusedClass::Unwritable);
    }
    out.push_str(text);
    Ok(())
}

fn is_tag(tag: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'!';
    tag.starts_with('!') && tag.bytes().all(inside)
}

/// Decimal, in one spelling.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits == "0" && text == "0" || !digits.starts_with('0'))
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('"');
}

pub fn parse(text: &str) -> Result<Stream, Fault> {
    let mut documents = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let mut reader = Reader {
            text: line,
            at: 0,
            line: u32::try_from(line_number).unwrap_or(u32::MAX),
        };
        let read = match line.is_empty() {
            true => Ok(reader.node(NULL, false, Content::Scalar("null".to_owned()))),
            false => reader
                .value(0)
                .and_then(|root| match reader.at == line.len() {
                    true => Ok(root),
                    false => Err(RefusedClass::Syntax),
                }),
        };
        let read = read.map_err(|class| Fault {
            class,
            line: line_number,
        });
        documents.push(read?);
        if documents.len() > LIMITS.documents as usize {
            return Err(Fault {
                class: RefusedClass::TooManyDocuments,
                line: line_number,
            });
        }
    }
    Ok(Stream { documents })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Result<(), RefusedClass> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(RefusedClass::Syntax),
        }
    }

    fn node(&self, tag: &str, tagged: bool, content: Content) -> Node {
        Node {
            tag: tag.to_owned(),
            tagged,
            anchor: None,
            style: Style::Plain,
            content,
            comments: Comments::default(),
            line: self.line,
            column: u32::try_from(self.at + 1).unwrap_or(u32::MAX),
        }
    }

    fn value(&mut self, depth: u32) -> Result<Node, RefusedClass> {
        if depth > LIMITS.depth {
            return Err(RefusedClass::TooDeep);
        }
        match self.peek() {
            Some(b'{') => self.mapping(depth),
            Some(b'[') => self.sequence(depth),
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.node(STRING, false, Content::Scalar(text)))
            }
            Some(b'!') => {
                let rest = &self.text[self.at..];
                let end = rest.find(' ').ok_or(RefusedClass::Syntax)?;
                let tag = &rest[..end];
                self.at += end + 1;
                let text = self.string()?;
                Ok(self.node(tag, true, Content::Scalar(text)))
            }
            _ => self.bare(),
        }
    }

    fn bare(&mut self) -> Result<Node, RefusedClass> {
        let rest = &self.text[self.at..];
        let inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let end = rest.find(|letter| !inside(letter)).unwrap_or(rest.len());
        let word = &rest[..end];
        let tag = match word {
            "null" => NULL,
            "true" | "false" => BOOLEAN,
            number if is_integer(number) => INTEGER,
            _ => return Err(RefusedClass::Syntax),
        };
        self.at += end;
        Ok(self.node(tag, false, Content::Scalar(word.to_owned())))
    }

    fn sequence(&mut self, depth: u32) -> Result<Node, RefusedClass> {
        self.take(b'[')?;
        let mut items = Vec::new();
        while self.peek() != Some(b']') {
            if !items.is_empty() {
                self.take(b',')?;
            }
            items.push(self.value(depth + 1)?);
        }
        self.take(b']')?;
        Ok(self.node(SEQUENCE, false, Content::Sequence(items)))
    }

    fn mapping(&mut self, depth: u32) -> Result<Node, RefusedClass> {
        self.take(b'{')?;
        let mut entries: Vec<(Node, Node)> = Vec::new();
        while self.peek() != Some(b'}') {
            if !entries.is_empty() {
                self.take(b',')?;
            }
            let key = self.string()?;
            if entries.iter().any(|(own, _)| own.text() == Some(&key)) {
                return Err(RefusedClass::DuplicateKey);
            }
            let key = self.node(STRING, false, Content::Scalar(key));
            self.take(b':')?;
            entries.push((key, self.value(depth + 1)?));
            if entries.len() > LIMITS.mapping_keys as usize {
                return Err(RefusedClass::TooManyKeys);
            }
        }
        self.take(b'}')?;
        Ok(self.node(MAPPING, false, Content::Mapping(entries)))
    }

    fn string(&mut self) -> Result<String, RefusedClass> {
        self.take(b'"')?;
        let mut read = String::new();
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(['"', '\\']).ok_or(RefusedClass::Syntax)?;
            read.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(read);
            }
            read.push(match self.peek() {
                Some(b'"') => '"',
                Some(b'\\') => '\\',
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                _ => return Err(RefusedClass::Syntax),
            });
            self.at += 1;
        }
    }
}
